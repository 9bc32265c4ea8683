/** Finds ids of what providers store in the members of requests and responses. */
import { isObject, mapList, stringAt } from '../json/json.ts'
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
    const at = `${path}.${name}`
    const changed = visit(name, member, at) ?? mapMembers(member, at, visit)
    if (changed === member) continue
    mapped ??= { ...value }
    mapped[name] = changed
  }
  return mapped ?? value
}

/** Opens the ids of files and containers that a value loads, at any depth. Returns the same value if there are none. */
export function openFiles(value: unknown, ids: IdOpener, path: string): unknown {
  const open = (id: unknown, param: string) =>
    typeof id === 'string' ? ids.need('file', id, param) : id
  return mapMembers(value, path, (name, member, param) => {
    if (citing.has(name)) return member
    if (name === 'file_id') return open(member, param)
    if (name === 'file_ids' && Array.isArray(member)) {
      return mapList(member, (id) => open(id, param))
    }
    const container = name === 'environment' ? stringAt(member, 'container_id') : undefined
    if (container === undefined || !isObject(member)) return undefined
    return { ...member, container_id: ids.need('container', container, `${param}.container_id`) }
  })
}
