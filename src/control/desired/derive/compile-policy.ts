/** Compiles the spec of a policy field to the resources for proxies, and collects its problems. */

import { compileVariants } from '../../../gateway/policies/conditional.ts'
import type { PolicyDefinition, PolicyProblem } from '../../../gateway/policies/define.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { Age, ObjectRef } from '../../../ground/model/names.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type {
  PolicyPhase,
  PolicyResource,
  PolicySection,
  PolicyTarget,
} from '../../../ground/model/resources.ts'
import type { Reader } from '../graph.ts'
import { expressionFindings } from './expressions.ts'
import type { Finding } from './finding.ts'
import { MissingReferences } from './missing-references.ts'
import { referencesFrom } from './referenced-objects.ts'

export interface PolicyField {
  readonly owner: ObjectRef
  readonly age: Age
  readonly section: PolicySection
  readonly field: string
  readonly phase: PolicyPhase
  /** Path of the field in the object, such as `spec.traffic.csrf`. */
  readonly path: string
  readonly spec: unknown
}

type CompiledConfig = Pick<PolicyResource, 'config' | 'configVersion' | 'secrets' | 'unenforceable'>

export interface CompiledField extends CompiledConfig {
  readonly definition: PolicyDefinition | undefined
  /** Whether proxies must get a resource for the field. */
  readonly effective: boolean
  readonly findings: readonly Finding[]
}

const empty = { config: 'null', configVersion: 0, unenforceable: undefined, effective: false }

/** The result for a security field that cannot be enforced: proxies reject all requests it applies to. */
function failClosed(
  definition: PolicyDefinition | undefined,
  message: string,
  own: readonly string[] = [message],
): CompiledField {
  const findings = [{ severity: 'closed', message, own } as const]
  return { ...empty, definition, unenforceable: message, effective: true, findings }
}

/** Compiles one field. The result is the same for all targets. */
export function compileField(policy: PolicyField, read: Reader): CompiledField {
  const compiled = compileSpec(policy, read)
  const unreadable = expressionFindings(policy.owner.kind, policy.path, policy.spec, policy.phase)
  if (unreadable.length === 0) return compiled
  const findings = [...compiled.findings, ...unreadable]
  const unsafe = unreadable.filter(({ severity }) => severity === 'closed')
  if (unsafe.length === 0) return { ...compiled, findings }
  const refused = failClosed(compiled.definition, unsafe.map(({ message }) => message).join('; '))
  return { ...refused, findings }
}

function compileSpec(
  { section, field, path, spec, owner }: PolicyField,
  read: Reader,
): CompiledField {
  const definition = findPolicy(section, field)
  if (definition?.compile === undefined) {
    return failClosed(definition, `${path} is not known to this version`)
  }
  const missing = new MissingReferences()
  const references = referencesFrom(owner.namespace, read, owner.kind, missing)
  const compiled = compileVariants(definition, spec, references)
  const { config, problems, protects = false, secrets = [], notes = [] } = compiled
  const fatal = problems.filter(({ partial }) => partial !== true)
  const text = problems.map((problem) => problemText(path, problem)).join('; ')
  const own = problems
    .filter((problem) => !missing.isAbout(spec, problem.path))
    .map((problem) => problemText(path, problem))
  if (definition.security && fatal.length > 0 && !protects) return failClosed(definition, text, own)
  if (config === undefined) {
    return { ...empty, definition, findings: [{ severity: 'ineffective', message: text, own }] }
  }
  const severity = protects && fatal.length > 0 ? 'closed' : 'ineffective'
  return {
    definition,
    config: canonicalJson(config),
    configVersion: definition.configVersion,
    secrets,
    unenforceable: undefined,
    effective: true,
    findings: [
      ...(text === '' ? [] : [{ severity, message: text, own } as const]),
      ...notes.map((note) => ({ severity: 'note', message: `${path}: ${note}` }) as const),
    ],
  }
}

function problemText(path: string, problem: PolicyProblem): string {
  return `${problem.path === '' ? path : `${path}.${problem.path}`}: ${problem.message}`
}

/** The resource for proxies of a compiled field on one target. */
export function policyResource(
  { owner, age, section, field, phase }: Omit<PolicyField, 'path' | 'spec'>,
  { config, configVersion, secrets = [], unenforceable }: CompiledConfig,
  target: PolicyTarget,
): PolicyResource {
  const part = target.section === undefined ? '' : `#${target.section}`
  const place = `${target.inline === true ? 'inline:' : ''}${objectKey(target)}${part}`
  return {
    type: 'policy',
    key: `policy/${section}/${owner.namespace}/${owner.name}/${field}/${place}`,
    policy: { namespace: owner.namespace, name: owner.name },
    section,
    field,
    phase,
    created: age.created,
    order: age.order,
    target,
    configVersion,
    config,
    ...(secrets.length > 0 && { secrets }),
    ...(unenforceable !== undefined && { unenforceable }),
  }
}
