import { type JsonNode, rawOf } from './node.ts'

/** Returns the members of an object as JSON, without those with the given keys. */
export function membersOf(
  text: string,
  node: JsonNode | undefined,
  without: readonly string[],
): string[] {
  return (node?.keys ?? []).flatMap((key, at) => {
    const value = node?.values?.[at]
    if (value === undefined || without.includes(key)) return []
    return [`${JSON.stringify(key)}:${rawOf(text, value)}`]
  })
}
