/** Finds ids of what providers store in the members of requests and responses. */
import { isObject, mapList, stringAt } from '../json/json.ts'
import { asciiName, otherCase } from '../json/names.ts'
import { LlmError } from '../llm-error.ts'
import type { IdOpener } from './stored-ids.ts'

/** Members whose file ids load nothing: they say what an earlier answer cited or found. */
const citing: ReadonlySet<string> = new Set(['annotations', 'results'])

type Visit = (name: string, member: unknown, path: string) => unknown

/**
 * Maps members of a value at any depth. `visit` returns undefined for those whose own members are mapped. Returns the
 * same value if nothing changes.
 */
export function mapMembers(value: unknown, path: string, visit: Visit): unknown {
  if (Array.isArray(value)) return mapList(value, (item) => mapMembers(item, path, visit))
  if (!isObject(value)) return value
  let mapped: Record<string, unknown> | undefined
  for (const name of Object.keys(value)) {
    const member = value[name]
    const at = path === '' ? name : `${path}.${name}`
    const changed = visit(name, member, at) ?? mapMembers(member, at, visit)
    if (changed === member) continue
    mapped ??= { ...value }
    mapped[name] = changed
  }
  return mapped ?? value
}

/** Whether a member has ids that are opened, or that no client may use. */
const hasIds: Readonly<Record<string, (member: unknown) => boolean>> = {
  file_id: (member) => typeof member === 'string',
  file_ids: Array.isArray,
  vector_store_ids: Array.isArray,
  container_id: (member) => typeof member === 'string',
}
/** @throws LlmError 400 if a server that ignores case would read ids in the member */
export function needPlainName(name: string, member: unknown): void {
  const plain = asciiName(name)
  if (plain === name) return
  const isIds = Object.hasOwn(hasIds, plain) && hasIds[plain]?.(member)
  const isEnvironment = plain === 'environment' && stringAt(member, 'container_id') !== undefined
  if (isIds || isEnvironment) throw otherCase(name, plain)
}

/**
 * Opens the ids of files and containers that a value loads, at any depth. Returns the same value if there are none.
 * @throws LlmError 400 if such a member is named in another case, or if the value names stores of vectors
 */
export function openFiles(value: unknown, ids: IdOpener, path: string): unknown {
  const open = (id: unknown, param: string) =>
    typeof id === 'string' ? ids.need('file', id, param) : id
  return mapMembers(value, path, (name, member, param) => {
    if (citing.has(name)) return member
    needPlainName(name, member)
    if (name === 'vector_store_ids' && Array.isArray(member)) throw notOfClients(param)
    if (name === 'file_id') return open(member, param)
    if (name === 'file_ids' && Array.isArray(member)) {
      return mapList(member, (id) => open(id, param))
    }
    const container = name === 'environment' ? stringAt(member, 'container_id') : undefined
    if (container === undefined || !isObject(member)) return undefined
    return { ...member, container_id: ids.need('container', container, `${param}.container_id`) }
  })
}

/** The gateway serves no paths by which clients could make such things, so that all of them are the provider account's. */
export const notOfClients = (param: string): LlmError =>
  new LlmError(
    400,
    `${param}: ids of the provider are not accepted from clients; set the field with overrides`,
  )
