//! Schedules compare the lanes of a row in a portable loop over scheduled words, because vector instructions cannot read these words.

fn main() {
    println!("cargo::rustc-cfg=fastskip_portable");
    println!("cargo::rerun-if-changed=build.rs");
}
