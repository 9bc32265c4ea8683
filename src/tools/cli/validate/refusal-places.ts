/** Finds the fields that the message of a condition is about. */

import type { Reference } from '../../../control/api/references.ts'
import { objectText } from '../../../ground/model/names.ts'
import { type PlacedCondition, parentText } from '../../../ground/model/placed-conditions.ts'

/** A path at the beginning of a message. */
const leadingPath = /^spec(?:\.[\w$-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])+/

/**
 * Paths of the fields that a message is about: the one that it begins with, or those of the references that
 * it names. Returns no path if it is about the whole object.
 */
export function fieldsOfMessage(
  message: string,
  { path, condition }: PlacedCondition,
  references: readonly Reference[],
): string[] {
  const [written] = leadingPath.exec(message) ?? []
  if (written !== undefined) return [written]
  const isOfListener = path.startsWith('status.listeners[')
  const named = references.flatMap((reference) => {
    if (isOfListener && reference.path === 'spec.parentRef') return []
    const text = textAfterName(message, reference)
    return text === undefined ? [] : [fieldOf(reference, text)]
  })
  if (named.length > 0) return unambiguous(named)
  if (condition.type !== 'Accepted') return []
  const parents = references.filter((reference) => isAboutParent(path, reference))
  return parents.map((reference) => fieldOf(reference, message))
}

/**
 * The fields with a wrong part, such as a port, if there are any. Otherwise, references of different lists
 * may differ in whether they are wrong: a Secret may be faulty for one use only. Then none is returned.
 */
function unambiguous(fields: readonly string[]): string[] {
  const parts = fields.filter((field) => !field.endsWith('.name'))
  if (parts.length > 0) return parts
  const lists = new Set(fields.map((field) => /([^.[]*)(?:\[\d+\])?\.name$/.exec(field)?.[1]))
  return lists.size === 1 ? [...fields] : []
}

/** The text after the name of a referenced object; undefined if the message does not name it. */
function textAfterName(message: string, { kind, namespace, by }: Reference): string | undefined {
  if (by.field !== 'name') return undefined
  const label = objectText({ kind, namespace, name: by.name })
  const at = message.indexOf(label)
  const rest = message.slice(at + label.length)
  return at < 0 || /^(?:[\w-]|\.\w)/.test(rest) ? undefined : rest
}

function isAboutParent(statusPath: string, reference: Reference): boolean {
  const { path, kind, namespace, by, sectionName, port } = reference
  if (!path.startsWith('spec.parentRefs[') || by.field !== 'name') return false
  const parent = { kind, name: by.name, sectionName, port }
  const texts = [parentText(parent), parentText({ ...parent, namespace })]
  return texts.some((text) => statusPath === `status.parents[${text}]`)
}

/** The field of a reference that a text is about. After a semicolon, messages list what would be valid. */
function fieldOf({ path, sectionName, port }: Reference, text: string): string {
  const words = (text.split(';')[0] ?? '').split(/[^\w.-]+/)
  if (port !== undefined && words.includes(String(port))) return `${path}.port`
  if (sectionName !== undefined && words.includes(sectionName)) return `${path}.sectionName`
  return `${path}.name`
}
