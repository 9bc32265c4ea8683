/**
 * TLSRoute, TCPRoute and UDPRoute: one resource for proxies per route, and one status entry per
 * parentRef. Rules have no matches, so only the first rule is used.
 */

import { objectKey } from '../../../ground/model/names.ts'
import type { Attachment, StreamBackend, StreamResource } from '../../../ground/model/resources.ts'
import type { BackendRef } from '../../api/gateway-api/common.ts'
import type { StreamRouteSpec } from '../../api/gateway-api/stream-routes.ts'
import { findRouteKind, streamRouteKinds } from '../../api/kinds.ts'
import { findBackendKind } from '../backend-kind.ts'
import { conditionOf } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type ResolvedBackend, resolveBackend } from './references.ts'
import { refusedRoute } from './refused-child.ts'
import { attachToParent } from './route-attachment.ts'
import { attachmentsOf, deriveRoute, unresolved } from './routes.ts'

/**
 * The hostnames in lower case, as they are compared to the SNI. A TLSRoute without hostnames, which only
 * versions before v1 allow, accepts all names of its listener.
 */
function hostnamesOf({ hostnames = [] }: StreamRouteSpec): string[] {
  return hostnames.map((hostname) => hostname.toLowerCase())
}

function resolve(reference: BackendRef, self: ObjectState, read: Reader): ResolvedBackend {
  const { kind, namespace } = self.ref
  const row = findRouteKind(kind)
  const resolved = resolveBackend(reference, { kind, namespace }, read, row?.carries)
  const { target } = resolved
  if (target.type !== 'backend') return resolved
  const backend = findBackendKind(target, read)?.definition
  const problem = backend?.streamProblem?.({
    hasServerNames: row?.listeners.includes('TLS') === true,
  })
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

function resourceOf(
  self: ObjectState,
  attachments: readonly Attachment[],
  ruleName: string | undefined,
  backends: readonly StreamBackend[],
): StreamResource[] {
  if (attachments.length === 0) return []
  const key = `stream/${objectKey(self.ref)}`
  const name = ruleName === undefined ? {} : { ruleName }
  return [{ type: 'stream', key, route: self.ref, ...name, ...self.age, attachments, backends }]
}

export const streamRouteStage: Stage = {
  name: 'stream-route',
  kinds: streamRouteKinds,
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedRoute(self, read)
    const spec = self.object.spec as StreamRouteSpec
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
    return deriveRoute(
      self,
      parents,
      {
        rules: spec.rules.slice(0, 1),
        resources: resourceOf(self, attachmentsOf(read, parents), rule?.name, backends),
        isAccepted: true,
        targets: backends.map(({ target }) => target),
        conditionsOf: ({ failure }) => [
          conditionOf('Accepted', failure, 'Accepted', self.generation, notes),
          conditionOf('ResolvedRefs', refs, 'ResolvedRefs', self.generation),
        ],
      },
      read,
    )
  },
}
