/** Spec of one policy field -> wire resources, with the problems that its object reports. */
import { canonicalJson } from '../../base/canonical.ts'
import type { Age, ObjectRef } from '../../model/names.ts'
import { objectKey } from '../../model/names.ts'
import type {
  PolicyPhase,
  PolicyResource,
  PolicySection,
  PolicyTarget,
  SecretRef,
} from '../../model/resources.ts'
import type { PolicyDefinition, PolicyProblem } from '../../policies/define.ts'
import { findPolicy } from '../../policies/registry.ts'
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

export interface CompiledField {
  readonly definition: PolicyDefinition | undefined
  readonly config: string
  readonly configVersion: number
  readonly secrets?: readonly SecretRef[]
  readonly unenforceable: string | undefined
  /** Should anything be sent to the proxy? */
  readonly effective: boolean
  readonly findings: readonly Finding[]
}

const nothing = { config: 'null', configVersion: 0, unenforceable: undefined, effective: false }

/** A security field that does not work: everything it covers must be refused. */
function closed(
  definition: PolicyDefinition | undefined,
  message: string,
  own: readonly string[] = [message],
): CompiledField {
  const findings = [{ severity: 'closed', message, own } as const]
  return { ...nothing, definition, unenforceable: message, effective: true, findings }
}

function ineffective(
  definition: PolicyDefinition | undefined,
  message: string,
  own: readonly string[] = [message],
): CompiledField {
  return { ...nothing, definition, findings: [{ severity: 'ineffective', message, own }] }
}

/** Compiles one field; it does not depend on the target. */
export function compileField(policy: PolicyField, read: Reader): CompiledField {
  const compiled = compileSpec(policy, read)
  const unreadable = expressionFindings(policy.owner.kind, policy.path, policy.spec)
  if (unreadable.length === 0) return compiled
  const findings = [...compiled.findings, ...unreadable]
  const unsafe = unreadable.filter(({ severity }) => severity === 'closed')
  if (unsafe.length === 0) return { ...compiled, findings }
  const refused = closed(compiled.definition, unsafe.map(({ message }) => message).join('; '))
  return { ...refused, findings }
}

function compileSpec(
  { section, field, path, spec, owner }: PolicyField,
  read: Reader,
): CompiledField {
  const definition = findPolicy(section, field)
  if (definition?.compile === undefined) {
    return closed(definition, `${path} is not known to this version`)
  }
  const missing = new MissingReferences()
  const references = referencesFrom(owner.namespace, read, owner.kind, missing)
  const compiled = definition.compile(spec, references)
  const { config, problems, protects = false, secrets = [], notes = [] } = compiled
  const whole = problems.filter(({ partial }) => partial !== true)
  const text = problems.map((problem) => problemText(path, problem)).join('; ')
  const own = problems
    .filter((problem) => !missing.isAbout(spec, problem.path))
    .map((problem) => problemText(path, problem))
  if (definition.security && whole.length > 0 && !protects) return closed(definition, text, own)
  if (config === undefined) return ineffective(definition, text, own)
  const severity = protects && whole.length > 0 ? 'closed' : 'ineffective'
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

/** The wire resource of a compiled field on one target. */
export function policyResource(
  { owner, age, section, field, phase }: Omit<PolicyField, 'path' | 'spec'>,
  {
    config,
    configVersion,
    secrets = [],
    unenforceable,
  }: Pick<CompiledField, 'config' | 'configVersion' | 'secrets' | 'unenforceable'>,
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
