use super::*;

/// Tables of `per_table` keys each, numbered from 1.
fn run_of(dir: &Path, entries: &[Entry], per_table: usize) -> OpenRun {
    let mut tables: Vec<Vec<Entry>> = Vec::new();
    let (mut keys, mut last) = (0, None);
    for entry in entries {
        if last != Some(&entry.key) {
            if keys % per_table == 0 {
                tables.push(Vec::new());
            }
            keys += 1;
            last = Some(&entry.key);
        }
        tables.last_mut().expect("begun with the first key").push(entry.clone());
    }
    OpenRun::new((1..).zip(&tables).map(|(number, entries)| {
        build(dir, number, &small_blocks(), entries).expect("a table");
        open(dir, number).expect("a table")
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_reads_as_one_table(all in entries(80), per_table in 1usize..6, moves in moves()) {
        // Catches an entry skipped or repeated where one table ends and the next begins, in either direction, and a key
        // looked for in the wrong table.
        let mut model = SortedVec::new(all);
        let dir = dir();
        let run = run_of(dir.path(), model.entries(), per_table);
        for entry in model.entries() {
            let table = run.find(&entry.key).expect("the table of a key");
            let found = get(table, &entry.key, entry.seqno)?;
            prop_assert_eq!(found, Some((entry.kind, entry.seqno, Slice::from(&entry.value[..]))));
        }
        for absent in [&b"\xff"[..], b"\x01\x7f", b"\x00\x00\x00\x00\x00\x00"] {
            let holds = |table: &Arc<Table>| *table.meta().smallest <= *absent && *absent <= *table.meta().largest;
            let expected = run.tables().iter().find(|table| holds(table)).map(|table| table.number());
            prop_assert_eq!(run.find(absent).map(|table| table.number()), expected);
        }
        assert_same(&mut run.iter(), &mut model.clone(), &moves);
        assert_same(&mut run.iter_uncached(), &mut model, &moves);
    }
}
