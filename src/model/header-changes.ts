import type { HeaderChanges } from './resources.ts'

/** A message head as far as header changes touch it. */
export interface EditableHead {
  /** Requests only: host and port that the message is for. */
  authority?: string
  readonly headers: {
    set(name: string, value: string): void
    add(name: string, value: string): void
    remove(name: string): void
  }
}

/**
 * Applies a Gateway API HTTPHeaderFilter: add, then set, then remove, so that a name in two lists
 * has one meaning. `host` of a request is its authority and cannot be removed.
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
