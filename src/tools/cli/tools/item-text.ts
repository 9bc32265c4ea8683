/** Texts about items of MCP servers and their versions. Hidden characters are shown. */
import { countHidden, showHidden, taggedText } from '../../../ground/base/hidden-characters.ts'
import { isObject } from '../../../ground/base/json-object.ts'

export const shortDigest = (digest: string): string => digest.slice(0, 12)

export const itemPath = (one: {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly name: string
}): string => `${one.backend} ${one.target} ${one.list} ${showHidden(one.name)}`

/** The members of a definition, as text. */
function membersOf(definition: string | undefined): ReadonlyMap<string, string> {
  if (definition === undefined) return new Map()
  const value: unknown = JSON.parse(definition)
  if (!isObject(value)) return new Map()
  return new Map(
    Object.entries(value).map(([name, one]) => [
      name,
      typeof one === 'string' ? one : JSON.stringify(one),
    ]),
  )
}

/** The members that differ, with their texts before and after. */
export function changedMembers(
  before: string | undefined,
  after: string | undefined,
): readonly {
  readonly member: string
  readonly before: string | undefined
  readonly after: string | undefined
}[] {
  const [old, now] = [membersOf(before), membersOf(after)]
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((member) => old.get(member) !== now.get(member))
    .map((member) => ({ member, before: old.get(member), after: now.get(member) }))
}

/** The lines of a difference: `-` before the old text of a member, `+` before the new one. */
export function differenceLines(before: string | undefined, after: string | undefined): string[] {
  return changedMembers(before, after).flatMap(({ member, before: old, after: now }) => [
    ...(old === undefined ? [] : [`  - ${member}: ${showHidden(old)}`]),
    ...(now === undefined ? [] : [`  + ${member}: ${showHidden(now)}`, ...warningsAbout(now)]),
  ])
}

/** Says that a text has characters that people do not see. */
export function warningsAbout(text: string): string[] {
  const count = countHidden(text)
  if (count === 0) return []
  const tagged = taggedText(text)
  const reads = tagged === '' ? '' : `; models may read: ${JSON.stringify(tagged)}`
  return [`    ${count} hidden character${count === 1 ? '' : 's'}${reads}`]
}
