/** How objects of the model differ from the messages of proto/resource.proto. */
import {
  DeltaSchema,
  type Listener,
  type Policy,
  ResourceSchema,
} from '../../../proto/gen/resource_pb.ts'
import { a2aShapes } from '../../gateway/backends/a2a/wire-shapes.ts'
import { aiShapes } from '../../gateway/backends/ai/wire-shapes.ts'
import { poolShapes } from '../../gateway/backends/inference-pool/wire-shapes.ts'
import { mcpShapes } from '../../gateway/backends/mcp/wire-shapes.ts'
import type { ObjectName } from '../../ground/model/names.ts'
import { portOfSection, portSection } from '../../ground/model/port-section.ts'
import {
  type BackendTarget,
  type ListenerResource,
  type PolicyResource,
  type PolicyTarget,
  policySections,
  type RouteFilter,
} from '../../ground/model/resources.ts'
import { codecsOf, type Shapes } from './codec.ts'
import type { Findings } from './fields.ts'

export const policyPhases = ['PreRouting', 'PostRouting'] as const

export const shapes: Shapes = {
  ...a2aShapes,
  ...aiShapes,
  ...mcpShapes,
  ...poolShapes,
  Resource: {
    isIsolated: true,
    fromWire: (resource: object, findings: Findings) => ({ resource, findings }),
  },
  ObjectRef: { isShared: true, shared: ['kind', 'namespace'] },
  Listener: {
    words: { protocol: ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP'] },
    toWire: ({ gateway: { namespace, name }, ...listener }: ListenerResource) => ({
      ...listener,
      gatewayNamespace: namespace,
      gatewayName: name,
    }),
    fromWire: ({ gatewayNamespace, gatewayName, ...listener }: Listener) => ({
      ...listener,
      gateway: { namespace: gatewayNamespace, name: gatewayName },
    }),
  },
  Route: {
    inlined: ['age'],
    shared: ['ruleName', 'attachments', 'backends'],
    absentIfEmpty: ['delegatedFrom'],
  },
  DelegatedFrom: { isShared: true },
  Stream: { inlined: ['age'], shared: ['attachments'] },
  Attachment: { shared: ['listener'] },
  RouteMatch: { shared: ['method'] },
  PathMatch: { words: { type: ['Exact', 'PathPrefix', 'RegularExpression'] } },
  NamedMatch: { words: { type: ['Exact', 'RegularExpression'] }, shared: ['name'] },
  RouteFilter: {
    toWire: (filter: RouteFilter) =>
      'changes' in filter ? { type: filter.type, ...filter.changes } : filter,
    fromWire: ({ type, ...filter }: { readonly type: string }) =>
      'set' in filter ? { type, changes: filter } : { type, ...filter },
  },
  HeaderChanges: { shared: ['remove'] },
  HeaderValue: { shared: ['name'] },
  PathModifier: { words: { type: ['ReplaceFullPath', 'ReplacePrefixMatch'] } },
  SessionPersistence: { words: { carrier: ['Cookie', 'Header'] } },
  BackendTarget: {
    isShared: true,
    // Readers that do not support pools read the reference as an invalid one.
    toWire(target: BackendTarget) {
      if (target.type !== 'pool') return target
      const { namespace, name } = target
      const message = 'this proxy knows no InferencePools'
      return { type: 'invalid', reason: 'UnsupportedValue', message, pool: { namespace, name } }
    },
    fromWire: (target: { readonly pool?: ObjectName }): object =>
      target.pool === undefined ? target : { type: 'pool', ...target.pool },
  },
  'Service.Port': { words: { protocol: ['UDP'] } },
  'Workload.Endpoint': { absentIfEmpty: ['forZones', 'forNodes'] },
  Policy: {
    inlined: ['age'],
    words: { section: policySections, phase: policyPhases },
    absentIfEmpty: ['secrets'],
    toWire: ({ policy, ...rest }: PolicyResource) => ({ ...rest, ...policy }),
    fromWire: ({ namespace, name, dispensable, ...rest }: Policy) => ({
      ...rest,
      policy: { namespace, name },
      ...(dispensable === true && { dispensable }),
    }),
  },
  'Policy.Target': {
    inlined: ['object'],
    // A port is sent in a separate field, so that proxies that do not know it fail closed. If it were sent as a section,
    // they would find none with its name, and ignore the policy.
    toWire({ section, ...target }: PolicyTarget) {
      const port = portOfSection(section)
      return { ...target, ...(port === undefined ? { section } : { port }) }
    },
    fromWire: ({ port, ...target }: { readonly port?: number }): object =>
      port === undefined ? target : { ...target, section: portSection(port) },
  },
}

const codecs = codecsOf(shapes)
export const resourceCodec = codecs(ResourceSchema)
export const deltaCodec = codecs(DeltaSchema)
