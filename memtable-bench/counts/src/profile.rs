//! Reads the profile that callgrind wrote for one case, with a line for each instruction.

use std::collections::HashSet;

/// Counts of executed instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Executed {
    /// All executed instructions, including those of libraries.
    pub instructions: u64,
    /// Atomic read-modify-writes of the program itself.
    pub atomics: u64,
}

/// The addresses of x86-64 atomic read-modify-writes in a listing by `objdump -d --no-show-raw-insn`: instructions with the prefix `lock` (also
/// full fences), and exchanges with memory, which lock without a prefix.
pub fn atomics(listing: &str) -> HashSet<u64> {
    let instructions = listing.lines().filter_map(|line| line.trim_start().split_once(":\t"));
    let is_atomic = |instruction: &str| {
        instruction.starts_with("lock ") || (instruction.starts_with("xchg ") && instruction.contains('('))
    };
    let addresses = instructions.filter(|(_, instruction)| is_atomic(instruction));
    addresses.filter_map(|(address, _)| u64::from_str_radix(address, 16).ok()).collect()
}

/// The counts of a profile that callgrind wrote with `--dump-instr=yes`, names and positions not compressed. The addresses `atomics` belong to
/// the object `program`.
pub fn executed(profile: &str, program: &str, atomics: &HashSet<u64>) -> Option<Executed> {
    let total = profile.lines().find_map(|line| line.strip_prefix("summary: "));
    let mut executed = Executed { instructions: total?.parse().ok()?, atomics: 0 };
    let mut object = "";
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            // Skips the costs of the callee, whose instructions have lines of their own.
            lines.next();
        } else if let Some(costs) = line.strip_prefix("0x").filter(|_| object == program) {
            let mut fields = costs.split(' ');
            let address = u64::from_str_radix(fields.next()?, 16).ok()?;
            if atomics.contains(&address) {
                executed.atomics += fields.nth(1)?.parse::<u64>().ok()?;
            }
        }
    }
    Some(executed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\n0000000000001000 <insert>:\n    1000:\tlock cmpxchg %rcx,(%rdx)\n    1005:\txchg   %ax,%ax\n    1007:\txchg   %eax,0x8(%rbx)\n    \
                           100a:\tmov    %rax,(%rbx)\n";
    const PROFILE: &str = "positions: instr line\nevents: Ir\nsummary: 1234\n\nob=/bin/it\nfn=insert\n0x1000 7 3\n0x1005 7 90\ncob=/lib/c\ncfn=copy\n\
                           calls=2 0x1000 0\n0x1007 8 500\n0x1007 8 5\n0x100a 8 5\n\nob=/lib/c\nfn=copy\n0x1000 1 700\n";

    #[test]
    fn atomics_are_locked_instructions_and_exchanges_with_memory_of_the_program_alone() {
        // Catches padding that counts as an exchange, the costs of a callee that count as the call's own, and addresses of another object.
        let atomics = atomics(LISTING);
        assert_eq!(atomics, HashSet::from([0x1000, 0x1007]));
        assert_eq!(executed(PROFILE, "/bin/it", &atomics), Some(Executed { instructions: 1234, atomics: 8 }));
        assert_eq!(executed("", "/bin/it", &atomics), None);
    }
}
