/**
 * TLSRoute, TCPRoute and UDPRoute: one wire resource for each route, and one status entry per
 * parentRef. Their rules match nothing, so the first one takes every connection.
 */
import type { BackendRef } from '../../api/gateway-api/common.ts'
import type { StreamRouteSpec } from '../../api/gateway-api/stream-routes.ts'
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import { controllerName } from '../../api/names.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { objectKey } from '../../model/names.ts'
import type { StreamBackend, StreamResource } from '../../model/resources.ts'
import { conditionOf, type Failure } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { type BackendUse, type ResolvedBackend, resolveBackend } from './references.ts'
import { refusedRoute } from './refused-child.ts'
import { rejectedConditions } from './rejected.ts'
import { attachToParent, type ParentAttachment, statusParentRef } from './route-attachment.ts'
import {
  acceptedGateways,
  attachmentsOf,
  contributionsOf,
  type RouteView,
  unresolved,
} from './routes.ts'

/**
 * Hostnames in the form in which names of handshakes are compared. Only versions before v1 allow
 * a TLSRoute to have none; it then takes every name of its listener.
 */
function hostnamesOf({ hostnames = [] }: StreamRouteSpec): string[] {
  return hostnames.map((hostname) => hostname.toLowerCase())
}

/** Why a GatewayBackend that exists cannot take streams of a kind. */
function misfit(spec: GatewayBackendSpec, kind: string): string | undefined {
  if (spec.ai !== undefined || spec.mcp !== undefined) return `it speaks HTTP only`
  if (spec.dynamicForwardProxy !== undefined && kind !== 'TLSRoute') {
    return 'a dynamic forward proxy needs a name to go by, which only TLS connections have'
  }
  return undefined
}

function resolve(reference: BackendRef, self: ObjectState, read: Reader): ResolvedBackend {
  const { kind, namespace } = self.ref
  const use: BackendUse = kind === 'UDPRoute' ? 'udp' : 'tcp'
  const resolved = resolveBackend(reference, { kind, namespace }, read, use)
  const { target } = resolved
  if (target.type !== 'backend') return resolved
  const backend = read.object('GatewayBackend', target.namespace, target.name)?.object
  const problem = backend && misfit(specOf<'GatewayBackend'>(backend), kind)
  if (problem === undefined) return resolved
  const message = `GatewayBackend ${target.namespace}/${target.name} cannot be used by a ${kind}: ${problem}`
  const reason = 'UnsupportedProtocol'
  return { target: { type: 'invalid', reason, message }, failure: { reason, message } }
}

function notesOf({ rules, useDefaultGateways }: StreamRouteSpec): string {
  const notes: string[] = []
  if (rules.length > 1) notes.push('only spec.rules[0] has an effect: rules have no matches')
  if (useDefaultGateways !== undefined) notes.push('spec.useDefaultGateways is not supported yet')
  return notes.join('; ')
}

function conditionsOf(
  { failure }: ParentAttachment,
  refs: Failure | undefined,
  notes: string,
  generation: number,
): DecidedCondition[] {
  return [
    conditionOf('Accepted', failure, 'Accepted', generation, notes),
    conditionOf('ResolvedRefs', refs, 'ResolvedRefs', generation),
  ]
}

function resourceOf(
  self: ObjectState,
  parents: readonly ParentAttachment[],
  ruleName: string | undefined,
  backends: readonly StreamBackend[],
): StreamResource[] {
  const attachments = attachmentsOf(parents)
  if (attachments.length === 0) return []
  const key = `stream/${objectKey(self.ref)}`
  const name = ruleName === undefined ? {} : { ruleName }
  return [{ type: 'stream', key, route: self.ref, ...name, ...self.age, attachments, backends }]
}

export const streamRouteStage: Stage = {
  name: 'stream-route',
  kinds: ['TLSRoute', 'TCPRoute', 'UDPRoute'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedRoute(self, read)
    const spec: StreamRouteSpec = specOf<'TLSRoute' | 'TCPRoute' | 'UDPRoute'>(self.object)
    const hostnames = hostnamesOf(spec)
    const parents = (spec.parentRefs ?? []).flatMap(
      (parentRef) => attachToParent(self.ref, hostnames, parentRef, read) ?? [],
    )
    if (parents.length === 0) return {}
    const [rule] = spec.rules
    const resolved = (rule?.backendRefs ?? []).map((reference) => ({
      weight: reference.weight ?? 1,
      ...resolve(reference, self, read),
    }))
    const refs = unresolved(resolved.flatMap(({ failure }) => failure ?? []))
    const backends = resolved.map(({ weight, target }) => ({ weight, target }))
    const notes = notesOf(spec)
    const view: RouteView = {
      gateways: acceptedGateways(parents),
      ruleNames: rule?.name === undefined ? [] : [rule.name],
    }
    const targets = backends.map(({ target }) => target)
    return {
      value: view,
      resources: resourceOf(self, parents, rule?.name, backends),
      contributions: contributionsOf(self, parents, true, targets, read),
      status: {
        parents: parents.map((parent) => ({
          parentRef: statusParentRef(parent.parentRef),
          controllerName,
          conditions: [
            ...conditionsOf(parent, refs, notes, self.generation),
            ...rejectedConditions(self.ref, self.generation, read),
          ],
        })),
      },
    }
  },
}
