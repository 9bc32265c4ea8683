import { fieldOverhead } from './static-table.ts'

/** What a decoded field is, as far as HTTP/2 treats it differently from others. */
export const fieldKinds = {
  regular: 0,
  method: 1,
  scheme: 2,
  authority: 3,
  path: 4,
  status: 5,
  protocol: 6,
  host: 7,
  cookie: 8,
  te: 9,
  contentLength: 10,
  /** Makes a message malformed: unknown pseudo-header, connection-specific field, bad name or value. */
  bad: 11,
} as const

export type FieldKind = (typeof fieldKinds)[keyof typeof fieldKinds]

/** A field as the tables of HPACK hold it, checked once. */
export interface HeaderEntry {
  readonly name: string
  readonly value: string
  /** Of the name alone: a value of another field may be bad. */
  readonly nameKind: FieldKind
  readonly kind: FieldKind
  /** The field line of HTTP/1.1; empty for pseudo-header fields. */
  readonly line: string
  /** Octets that it counts in a table and in a list (RFC 7541 4.1). */
  readonly size: number
}

const namedKinds = new Map<string, FieldKind>([
  [':method', fieldKinds.method],
  [':scheme', fieldKinds.scheme],
  [':authority', fieldKinds.authority],
  [':path', fieldKinds.path],
  [':status', fieldKinds.status],
  [':protocol', fieldKinds.protocol],
  ['host', fieldKinds.host],
  ['cookie', fieldKinds.cookie],
  ['te', fieldKinds.te],
  ['content-length', fieldKinds.contentLength],
  // Connection-specific fields (RFC 9113 8.2.2).
  ['connection', fieldKinds.bad],
  ['keep-alive', fieldKinds.bad],
  ['proxy-connection', fieldKinds.bad],
  ['transfer-encoding', fieldKinds.bad],
  ['upgrade', fieldKinds.bad],
])

/** Lower case only (RFC 9113 8.2.1). */
const namePattern = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** No control characters, and no white space at either end (RFC 9113 8.2.1). */
const valuePattern = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

export function kindOfName(name: string): FieldKind {
  return namedKinds.get(name) ?? (namePattern.test(name) ? fieldKinds.regular : fieldKinds.bad)
}

/** A field with a name whose kind is known. */
export function headerEntry(name: string, value: string, nameKind: FieldKind): HeaderEntry {
  const kind = valuePattern.test(value) ? nameKind : fieldKinds.bad
  return {
    name,
    value,
    nameKind,
    kind,
    line: isPseudo(nameKind) ? '' : `${name}: ${value}\r\n`,
    size: name.length + value.length + fieldOverhead,
  }
}

/** Pseudo-header fields precede all others (RFC 9113 8.3). */
export function isPseudo(kind: FieldKind): boolean {
  return kind >= fieldKinds.method && kind <= fieldKinds.protocol
}
