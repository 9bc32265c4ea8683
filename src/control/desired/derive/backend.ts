/** GatewayBackend: derives its destination, its inline policies, and whether it can be served. */

import type {
  BackendPart,
  BackendReader,
  DerivedBackend,
} from '../../../gateway/backends/define.ts'
import { matchesSelector } from '../../../ground/model/label-selector.ts'
import { type ObservedLists, observedListsInput } from '../../../ground/model/mcp-lists.ts'
import { type ObjectName, objectKey } from '../../../ground/model/names.ts'
import type { Destination, PolicyResource } from '../../../ground/model/resources.ts'
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import { backendKindOf, kindOfPolicyField } from '../backend-kind.ts'
import { conditionFalse, conditionTrue, joinOwn, notOwn } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { compileField, policyResource } from './compile-policy.ts'
import { fetchedDocument, readDocument } from './documents.ts'
import { endpointNote } from './endpoint-fields.ts'
import { expressionFindings } from './expressions.ts'
import type { Finding } from './finding.ts'
import { namespaceLabels } from './gateway.ts'
import { resolveModelServer } from './inference-pool.ts'
import { referencesFrom } from './referenced-objects.ts'
import { rejectedConditions } from './rejected.ts'
import { stdioAnnotation } from './stdio-parameters.ts'

/** Where policies are inside a backend: in its spec, for the whole backend, or in one of its parts. */
type InlinePlace = Pick<BackendPart, 'path' | 'policies'> & Partial<Pick<BackendPart, 'section'>>

/** The parts of a backend, such as its providers or targets. */
export function partsOf(spec: GatewayBackendSpec): readonly BackendPart[] {
  const kind = backendKindOf(spec)
  return kind?.definition.parts?.(kind.spec) ?? []
}

export function inlinePlaces(spec: GatewayBackendSpec): readonly InlinePlace[] {
  const field = backendKindOf(spec)?.definition.field
  const parts = partsOf(spec).map((part) => ({ ...part, path: `spec.${field}.${part.path}` }))
  return [{ path: 'spec.policies', policies: spec.policies }, ...parts]
}

interface InlinePolicies {
  readonly resources: PolicyResource[]
  readonly findings: Finding[]
}

function inlinePolicies(self: ObjectState, spec: GatewayBackendSpec, read: Reader): InlinePolicies {
  const found: InlinePolicies = {
    resources: [],
    findings: expressionFindings('GatewayBackend', 'spec', spec, 'PostRouting', 'policies'),
  }
  const own = backendKindOf(spec)?.definition
  for (const place of inlinePlaces(spec)) {
    for (const [field, value] of Object.entries(place.policies ?? {})) {
      if (value === undefined) continue
      const kind = kindOfPolicyField(field)
      if (kind !== undefined && kind !== own) {
        const message = `${place.path}.${field} has no effect on this type of backend`
        found.findings.push({ severity: 'note', message })
        continue
      }
      addInline(self, place, { field, value }, read, found)
      const path = `${place.path}.${field}`
      const message = endpointNote({ field, path, spec: value }, own?.field)
      if (message !== undefined) found.findings.push({ severity: 'note', message })
    }
  }
  return found
}

function addInline(
  self: ObjectState,
  { path, section }: InlinePlace,
  { field, value }: { readonly field: string; readonly value: unknown },
  read: Reader,
  { resources, findings }: InlinePolicies,
): void {
  const place = {
    owner: self.ref,
    age: self.age,
    section: 'backend',
    phase: 'PostRouting',
  } as const
  const policy = { ...place, field, path: `${path}.${field}`, spec: value }
  const compiled = compileField(policy, read)
  findings.push(...compiled.findings)
  const target = { ...self.ref, ...(section !== undefined && { section }), inline: true }
  if (compiled.effective) resources.push(policyResource(policy, compiled, target))
}

/** What routes read about a backend. */
export interface BackendView {
  /** Keys of the Services behind the backend, which policies may target. */
  readonly services: readonly string[]
  /** InferencePools behind the backend. */
  readonly pools: readonly ObjectName[]
  /** Section names that policies may use for its parts. */
  readonly sections: readonly string[]
}

const sorted = (texts: readonly string[]): string[] => [...new Set(texts)].sort()

function viewOf({ found }: DerivedBackend): BackendView | undefined {
  if (found === undefined) return undefined
  const services = found.services.map((name) => objectKey({ kind: 'Service', ...name }))
  const { sections, pools = [] } = found
  return { services: sorted(services), pools, sections: sorted(sections) }
}

function readerOf(self: ObjectState, read: Reader): BackendReader {
  const { namespace, name } = self.ref
  return {
    document: (configMap, key) =>
      readDocument(
        referencesFrom(namespace, read).configMap(configMap),
        `${namespace}/${configMap}`,
        key,
      ),
    fetchedDocument: (served) => fetchedDocument(served, self.ref, read),
    secret: (secret) => referencesFrom(namespace, read).secret(secret),
    stdioSettings: () => read.index('stdio-parameters', '').flatMap((state) => stdioSetting(state)),
    modelServer(reference) {
      const { target, failure } = resolveModelServer(reference, self.ref, read)
      return { target, problem: failure?.message }
    },
    observedLists: () => read.input<ObservedLists>(observedListsInput(`${namespace}/${name}`)),
    services({ namespaces, services }) {
      const candidates =
        namespaces === undefined
          ? read.index('services', self.ref.namespace)
          : read
              .index('services', '')
              .filter(({ ref }) =>
                matchesSelector(namespaces, namespaceLabels(ref.namespace, read)),
              )
      return candidates
        .filter(({ object }) => matchesSelector(services, object?.metadata.labels ?? {}))
        .map(({ ref, object }) => ({
          ...ref,
          annotations: object?.metadata.annotations ?? {},
          ...(object !== undefined && { spec: specOf<'Service'>(object) }),
        }))
    },
  }
}

/** Kubernetes separates networks of pods, not of the containers in a pod. */
const podNetwork = 'they share the network of the pod; restrict it with a NetworkPolicy'

/** Returns what GatewayParameters, or the command line of a gateway, say about commands. */
function stdioSetting({ ref, object }: ObjectState) {
  const stdio = object && specOf<'GatewayParameters'>(object).stdio
  if (stdio === undefined) return []
  const { [stdioAnnotation]: network } = object?.metadata.annotations ?? {}
  if (network === undefined) {
    const by = `spec.stdio of GatewayParameters ${ref.namespace}/${ref.name}`
    return [{ by, network: podNetwork }]
  }
  return [{ by: '--stdio-servers true', ...(network !== '' && { network }) }]
}

/** The Accepted condition; `ResolvedRefs` exists only on routes. */
function accepted(self: ObjectState, findings: readonly Finding[]) {
  const serious = findings.filter(({ severity }) => severity === 'closed')
  const message = findings.map((finding) => finding.message).join('; ')
  return serious.length > 0
    ? conditionFalse('Accepted', 'TranslationError', self.generation, message, joinOwn(serious).own)
    : conditionTrue('Accepted', 'Accepted', self.generation, message)
}

/** The conditions that only this kind of backend has. Servers cause them, so the object has no mistake. */
const ownConditions = ({ generation }: ObjectState, { conditions = [] }: DerivedBackend) =>
  conditions.map(({ type, isTrue, reason, message }) =>
    isTrue
      ? conditionTrue(type, reason, generation, message)
      : conditionFalse(type, reason, generation, message, notOwn.own),
  )

export const backendStage: Stage = {
  name: 'backend',
  kinds: ['GatewayBackend'],
  derive(self: ObjectState, read: Reader): Derived {
    const spec = self.object && specOf<'GatewayBackend'>(self.object)
    const kind = spec && backendKindOf(spec)
    if (spec === undefined || kind === undefined) return refusedBackend(self)
    const { namespace, name } = self.ref
    const derived = kind.definition.derive(kind.spec, readerOf(self, read))
    const destination = { type: kind.definition.type, ...derived.destination } as Destination
    const { resources, findings } = inlinePolicies(self, spec, read)
    for (const message of derived.notes ?? []) findings.push({ severity: 'note', message })
    for (const message of derived.problems ?? []) findings.push({ severity: 'closed', message })
    const view = viewOf(derived)
    const key = `backend/${namespace}/${name}`
    return {
      ...(view !== undefined && { value: view }),
      resources: [{ type: 'backend', key, namespace, name, destination }, ...resources],
      status: {
        conditions: [
          accepted(self, findings),
          ...ownConditions(self, derived),
          ...rejectedConditions(self.ref, self.generation, read),
        ],
      },
    }
  },
}

function refusedBackend({ refused }: ObjectState): Derived {
  if (refused === undefined) return {}
  const { generation } = refused
  const message = problemsText(refused)
  const condition = conditionFalse('Accepted', 'TranslationError', generation, message)
  return { status: { conditions: [condition] } }
}
