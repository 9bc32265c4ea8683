export function findProperty(name: usize, length: i32): i32 { return -1 }
export function propertyRanges(property: i32): usize { return 0 }
export function propertyCount(property: i32): u32 { return 0 }
