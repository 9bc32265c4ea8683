/**
 * Canonical JSON: object keys sorted by UTF-16 code units, no white space, `undefined` members left
 * out. Equal values give equal bytes on every machine, so that digests can be compared.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) {
    let list = ''
    for (const item of value) list += list === '' ? canonicalJson(item) : `,${canonicalJson(item)}`
    return `[${list}]`
  }
  const record = value as Record<string, unknown>
  let members = ''
  for (const key of sortedKeys(record)) {
    const member = record[key]
    if (member === undefined) continue
    members += `${members === '' ? '' : ','}${quoted(key)}:${canonicalJson(member)}`
  }
  return `{${members}}`
}

/** Most records are written in order, and few have many members: looking is cheaper than sorting. */
function sortedKeys(record: Record<string, unknown>): string[] {
  const keys = Object.keys(record)
  for (let at = 1; at < keys.length; at++) {
    if ((keys[at - 1] ?? '') > (keys[at] ?? '')) return keys.sort()
  }
  return keys
}

/** Names of members that were quoted before: nearly all are fields of the interface. */
const known = new Map<string, string>()
const mostKnown = 4_096

function quoted(key: string): string {
  const before = known.get(key)
  if (before !== undefined) return before
  const text = JSON.stringify(key)
  if (known.size < mostKnown) known.set(key, text)
  return text
}
