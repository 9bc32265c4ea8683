/** Appends items to a list: as arguments of `push`, many items would exhaust the stack. */
export function appendAll<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item)
}
