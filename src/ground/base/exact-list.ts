/** All empty lists that are kept. */
const noItems: readonly never[] = []

/**
 * Copies a list that is kept for long without spare room. V8 makes room for 16 more items (128 bytes) in a list
 * that grows by `push`, `filter` or `flatMap`. Empty lists are one object.
 */
export function exactList<Item>(list: readonly Item[]): readonly Item[] {
  return list.length === 0 ? noItems : list.slice()
}
