import { fieldOverhead } from './static-table.ts'

/** Kinds of header fields, each of which HTTP/2 treats differently. */
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
  /** Malformed: an unknown pseudo-header or connection-specific field, or a bad name or value. */
  bad: 11,
} as const

export type FieldKind = (typeof fieldKinds)[keyof typeof fieldKinds]

/** A field as the HPACK tables hold it. It is checked only once, when the entry is made. */
export interface HeaderEntry {
  readonly name: string
  readonly value: string
  /** The kind that follows from the name alone; it also applies to other fields of that name. */
  readonly nameKind: FieldKind
  readonly kind: FieldKind
  /** The field line in HTTP/1.1; empty for pseudo-header fields. */
  readonly line: string
  /** Octets that the field counts in a table and in a header list (RFC 7541 4.1). */
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

/** Names are in lower case (RFC 9113 8.2.1). */
const namePattern = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** Values have no control characters, and no white space at either end (RFC 9113 8.2.1). */
const valuePattern = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

export function kindOfName(name: string): FieldKind {
  return namedKinds.get(name) ?? (namePattern.test(name) ? fieldKinds.regular : fieldKinds.bad)
}

/** Checks the value of a field and creates its entry. `nameKind` is the kind of its name. */
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

/** Whether a field is a pseudo-header field, which must precede all regular fields (RFC 9113 8.3). */
export function isPseudo(kind: FieldKind): boolean {
  return kind >= fieldKinds.method && kind <= fieldKinds.protocol
}
