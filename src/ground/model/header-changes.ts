import type { HeaderChanges } from './resources.ts'

/** The part of a message head that header changes can edit. */
interface EditableHead {
  /** Set for requests only: the host and port that the request is for. */
  authority?: string
  readonly headers: {
    set(name: string, value: string): void
    add(name: string, value: string): void
    remove(name: string): void
  }
}

/**
 * Applies a Gateway API HTTPHeaderFilter: first `add`, then `set`, then `remove`, so that the result is
 * defined for a name that is in several lists. The `host` of a request is its authority, which cannot
 * be removed.
 */
export function changeHeaders(head: EditableHead, changes: HeaderChanges): void {
  for (const { name, value } of changes.add) {
    if (!writeAuthority(head, name, value)) head.headers.add(name, value)
  }
  for (const { name, value } of changes.set) {
    if (!writeAuthority(head, name, value)) head.headers.set(name, value)
  }
  for (const name of changes.remove) {
    if (!isAuthority(head, name)) head.headers.remove(name)
  }
}

function isAuthority(head: EditableHead, name: string): boolean {
  return name.length === 4 && head.authority !== undefined && name.toLowerCase() === 'host'
}

function writeAuthority(head: EditableHead, name: string, value: string): boolean {
  if (!isAuthority(head, name)) return false
  head.authority = value
  return true
}

/** RFC 9110 5.1: a field name is a token. */
export function isFieldName(name: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)
}

/** Whether it is a field value (RFC 9110 5.5) without surrounding white space. Bytes from 0x80 are Latin-1. */
export function isFieldValue(value: string): boolean {
  return /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/.test(value)
}

/** The path and message of each change that could not be sent; empty if there is none. */
export function headerProblems(changes: HeaderChanges): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = []
  for (const list of ['set', 'add'] as const) {
    changes[list].forEach(({ name, value }, at) => {
      if (!isFieldName(name)) problems.push(notName(`${list}[${at}].name`))
      if (!isFieldValue(value)) problems.push(notValue(`${list}[${at}].value`))
    })
  }
  changes.remove.forEach((name, at) => {
    if (!isFieldName(name)) problems.push(notName(`remove[${at}]`))
  })
  return problems
}

const notName = (path: string) => ({ path, message: 'is not an HTTP field name' })
const notValue = (path: string) => ({
  path,
  message: 'holds characters that an HTTP field value cannot carry',
})
