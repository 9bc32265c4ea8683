/**
 * Returns canonical JSON: object keys are sorted by UTF-16 code units, there is no white space, and
 * `undefined` members are left out. Equal values give equal bytes everywhere, so that digests can be
 * compared.
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

/** Sorts only if necessary: most records are already in order, and checking is cheaper than sorting. */
function sortedKeys(record: Record<string, unknown>): string[] {
  const keys = Object.keys(record)
  for (let at = 1; at < keys.length; at++) {
    if ((keys[at - 1] ?? '') > (keys[at] ?? '')) return keys.sort()
  }
  return keys
}

/** Cache of quoted member names. Nearly all of them are field names of the API, so it stays small. */
const quotedNames = new Map<string, string>()
const maxQuotedNames = 4_096

function quoted(key: string): string {
  const before = quotedNames.get(key)
  if (before !== undefined) return before
  const text = JSON.stringify(key)
  if (quotedNames.size < maxQuotedNames) quotedNames.set(key, text)
  return text
}
