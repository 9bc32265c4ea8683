/** Converts agentgateway's Kubernetes resources, which have the same fields under other names. */

import { validateObject } from '../../../control/api/validate.ts'
import { entryOf, isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { ownGroup } from '../../../ground/model/api-names.ts'
import type { Conversion, ImportedManifest } from '../conversion.ts'
import { isProtection, type SourceDocument, type SourceField } from '../field.ts'
import { convertClass, isStandard, openObject, wholeObject } from '../kubernetes.ts'
import { objectKind } from '../source.ts'
import { differenceAt } from './differences.ts'
import { kindNames, nameInSluice, originalPath, valueInSluice } from './names.ts'

export const sourceGroup = 'agentgateway.dev'

/** A copy with Sluice's names of fields, enumeration values and references. */
function renamed(value: unknown, path: string): unknown {
  if (typeof value === 'string') return valueInSluice(path, value)
  if (Array.isArray(value)) return value.map((item, index) => renamed(item, `${path}.${index}`))
  if (!isObject(value)) return value
  const copy: JsonObject = Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      nameInSluice(path, name),
      renamed(field, `${path}.${name}`),
    ]),
  )
  if (copy.group === sourceGroup && typeof copy.kind === 'string') {
    return { ...copy, group: ownGroup, kind: entryOf(kindNames, copy.kind) ?? copy.kind }
  }
  const { appProtocol } = copy
  return typeof appProtocol === 'string' && appProtocol.startsWith(`${sourceGroup}/`)
    ? { ...copy, appProtocol: appProtocol.replace(sourceGroup, ownGroup) }
    : copy
}

/** Models of the source have their guards beside their other policies. */
function withGuards(model: ImportedManifest): ImportedManifest {
  const { spec } = model as { readonly spec?: unknown }
  const policies = isObject(spec) ? spec.policies : undefined
  if (!isObject(spec) || !isObject(policies) || policies.promptGuard === undefined) return model
  const { promptGuard, ...others } = policies
  return { ...model, spec: { ...spec, policies: { ...others, ai: { promptGuard } } } }
}

const maxRemovals = 200

/** Removes the fields that Sluice does not have, and reports each. */
function withKnownFields(
  object: ImportedManifest,
  origin: SourceField,
  result: Conversion,
): ImportedManifest {
  const copy = structuredClone(object) as ImportedManifest
  for (let count = 0; count < maxRemovals; count++) {
    const outcome = validateObject(copy)
    if (outcome.ok) return copy
    // An unknown field comes before the rules that it breaks by being there.
    const unknown = outcome.problems.find(({ message }) => message.includes('unknown'))
    const problem = unknown ?? outcome.problems[0]
    if (problem === undefined) return copy
    const removed = removeAt(copy, problem.path)
    if (removed === undefined) return copy
    reportRemoval(problem, removed.value, origin, result)
  }
  return copy
}

/** Reports a removed field, unless Sluice always does what its value says. */
function reportRemoval(
  { path: ownPath, message }: { readonly path: string; readonly message: string },
  value: unknown,
  origin: SourceField,
  result: Conversion,
): void {
  const path = originalPath(ownPath)
  const difference = message.includes('unknown') ? differenceAt(path) : undefined
  if (difference?.status === 'default' && difference.values.includes(value)) return
  const kind = difference?.loss ?? (isProtection(path) ? 'protection' : 'lost')
  const why = difference === undefined ? message : `${message}; ${difference.reason}`
  result.report(kind, origin, `has no counterpart: ${why}`, path)
}

/** Removes the field at a path, and returns its value; undefined for top-level fields, which an object must have. */
function removeAt(object: unknown, path: string): { readonly value: unknown } | undefined {
  const steps = [...path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g)].map(
    ([, index, quoted, name]) => index ?? quoted ?? name ?? '',
  )
  const last = steps.pop()
  if (last === undefined || steps.length === 0) return undefined
  let parent: unknown = object
  for (const step of steps) parent = (parent as Record<string, unknown> | undefined)?.[step]
  if (Array.isArray(parent)) {
    const [value] = parent.splice(Number(last), 1)
    return { value }
  }
  if (!isObject(parent) || !Object.hasOwn(parent, last)) return undefined
  const value = parent[last]
  delete (parent as Record<string, unknown>)[last]
  return { value }
}

function convertObject(document: SourceDocument, result: Conversion): void {
  const field = openObject(document, result)
  if (field === undefined) return
  const { group = '', kind = '' } = objectKind(document) ?? {}
  if (group === sourceGroup && entryOf(kindNames, kind) === undefined) {
    field.refuse('protection', `${kind} has no counterpart; it may protect something`)
    return
  }
  const object = renamed(wholeObject(field), '') as ImportedManifest
  if (group === sourceGroup) {
    const own = {
      ...object,
      apiVersion: `${ownGroup}/v1alpha1`,
      kind: entryOf(kindNames, kind) ?? kind,
    }
    const placed = kind === 'AgentgatewayModel' ? withGuards(own) : own
    result.add(withKnownFields(placed, field, result), field)
  } else if (isStandard(document)) {
    result.add(convertClass(object, sourceGroup), field)
  } else field.report('lost', 'is not a kind that Sluice reads')
}

export function convertObjects(documents: readonly SourceDocument[], result: Conversion): void {
  for (const document of documents) convertObject(document, result)
}
