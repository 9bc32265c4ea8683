/** Converts agentgateway's Kubernetes resources, which have the same fields under other names. */

import { validateObject } from '../../../control/api/validate.ts'
import { entryOf, isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { ownGroup } from '../../../ground/model/api-names.ts'
import type { Conversion, ImportedManifest } from '../conversion.ts'
import { isProtection, type SourceDocument, type SourceField } from '../field.ts'
import { convertClass, isStandard, openObject, wholeObject } from '../kubernetes.ts'
import { objectKind } from '../source.ts'

export const sourceGroup = 'agentgateway.dev'

const kinds: Readonly<Record<string, string>> = {
  AgentgatewayBackend: 'GatewayBackend',
  AgentgatewayModel: 'AgentgatewayModel',
  AgentgatewayPolicy: 'GatewayPolicy',
  AgentgatewayParameters: 'GatewayParameters',
}

const vendors: Readonly<Record<string, string>> = {
  openai: 'vendorA',
  azureopenai: 'vendorB',
  anthropic: 'vendorC',
  gemini: 'vendorD',
  vertexai: 'vendorE',
  bedrock: 'vendorF',
}

/** New names of fields and values, by the end of the path at which they occur. */
const renames: readonly {
  readonly at: RegExp
  readonly names: Readonly<Record<string, string>>
}[] = [
  { at: /\.ai\.provider$|\.providers\.\d+$/, names: vendors },
  { at: /\.promptGuard\.request\.\d+$/, names: { openAIModeration: 'vendorAModeration' } },
]
const values: typeof renames = [
  {
    at: /\.ai\.routes\.[^.]*$|\.custom\.formats\.\d+\.type$/,
    names: { AnthropicTokenCount: 'VendorCTokenCount' },
  },
  {
    at: /\.mcp\.authentication\.provider$|\.jwtAuthentication\.mcp\.provider$/,
    names: { Auth0: 'IdpA', Keycloak: 'IdpB' },
  },
  // The condition of the source is that there are several targets, without which Always has no prefixes either.
  { at: /\.mcp\.prefixMode$/, names: { Conditional: 'Always' } },
]

const rename = (table: typeof renames, path: string, name: string): string => {
  const names = table.find(({ at }) => at.test(path))?.names ?? {}
  return entryOf(names, name) ?? name
}

/** A copy with Sluice's names of fields, enumeration values and references. */
function renamed(value: unknown, path: string): unknown {
  if (typeof value === 'string') return rename(values, path, value)
  if (Array.isArray(value)) return value.map((item, index) => renamed(item, `${path}.${index}`))
  if (!isObject(value)) return value
  const copy: JsonObject = Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      rename(renames, path, name),
      renamed(field, `${path}.${name}`),
    ]),
  )
  if (copy.group === sourceGroup && typeof copy.kind === 'string') {
    return { ...copy, group: ownGroup, kind: entryOf(kinds, copy.kind) ?? copy.kind }
  }
  const { appProtocol } = copy
  return typeof appProtocol === 'string' && appProtocol.startsWith(`${sourceGroup}/`)
    ? { ...copy, appProtocol: appProtocol.replace(sourceGroup, ownGroup) }
    : copy
}

/** The names of the source, so that findings name the fields that the user wrote. */
const originalNames = Object.entries({ ...vendors, openAIModeration: 'vendorAModeration' })
const originalPath = (path: string): string =>
  originalNames.reduce((text, [source, name]) => text.replaceAll(`.${name}`, `.${source}`), path)

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
    if (problem === undefined || !removeAt(copy, problem.path)) return copy
    const path = originalPath(problem.path)
    const reason = `has no counterpart: ${problem.message}`
    result.report(isProtection(path) ? 'protection' : 'lost', origin, reason, path)
  }
  return copy
}

/** Removes the field at a path. Returns false for the outermost fields, which an object must have. */
function removeAt(object: unknown, path: string): boolean {
  const steps = [...path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g)].map(
    ([, index, quoted, name]) => index ?? quoted ?? name ?? '',
  )
  const last = steps.pop()
  if (last === undefined || steps.length === 0) return false
  let parent: unknown = object
  for (const step of steps) parent = (parent as Record<string, unknown> | undefined)?.[step]
  if (Array.isArray(parent)) return parent.splice(Number(last), 1).length === 1
  return (
    isObject(parent) &&
    Object.hasOwn(parent, last) &&
    delete (parent as Record<string, unknown>)[last]
  )
}

function convertObject(document: SourceDocument, result: Conversion): void {
  const field = openObject(document, result)
  if (field === undefined) return
  const { group = '', kind = '' } = objectKind(document) ?? {}
  if (group === sourceGroup && entryOf(kinds, kind) === undefined) {
    field.refuse('protection', `${kind} has no counterpart; it may protect something`)
    return
  }
  const object = renamed(wholeObject(field), '') as ImportedManifest
  if (group === sourceGroup) {
    const own = {
      ...object,
      apiVersion: `${ownGroup}/v1alpha1`,
      kind: entryOf(kinds, kind) ?? kind,
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
