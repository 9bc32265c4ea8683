/** The first phases of a request: which listener it came to, and who its client is. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ForwardedRules } from '../../../ground/exchange/connection.ts'
import type { Peer } from '../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../ground/exchange/forwarding.ts'
import { connectionRefusal, type PortConflict } from '../config/shared-ports.ts'
import { clientBeforeHops, forwardedClient } from './forwarded-client.ts'
import type { RequestContext } from './request-context.ts'
import { findListener } from './route.ts'
import type { GatewayRuntime } from './runtime.ts'
import { startTrace } from './tracing.ts'

export function identifyClient(
  { exchange }: RequestContext,
  { isTrustedProxy }: GatewayRuntime,
): undefined {
  if (isTrustedProxy === undefined) return
  exchange.forwardedFor = forwardedClient(exchange.request, exchange.source, isTrustedProxy)
}

export function selectListener(
  context: RequestContext,
  { config, heads, random }: GatewayRuntime,
): undefined {
  findListener(context, config, heads)
  const { exchange, listener } = context
  if (listener === undefined) throw new GatewayError('listener_not_found')
  exchange.place = listener.place
  checkConnection(context, config.portConflicts)
  const { http } = listener.frontend().client
  if (http?.maxBufferBytes !== undefined) exchange.bufferLimit = http.maxBufferBytes
  context.observers = listener.observers()
  if (context.observers.parts.requestBody) exchange.requestBody.record(exchange.bufferLimit)
  if (context.observers.tracing !== undefined) startTrace(context, random)
}

/**
 * Applies the rules about connections again: the port accepts a connection that any of its listeners accepts, and only
 * the request says which listener it is for.
 */
function checkConnection(
  { exchange, listener }: RequestContext,
  conflicts: readonly PortConflict[],
): void {
  if (listener === undefined) return
  if (listener.frontend().client.refusal === undefined && conflicts.length === 0) return
  const { forwardedFor } = exchange
  exchange.forwardedFor = undefined
  const refused = connectionRefusal(conflicts, listener, exchange)
  exchange.forwardedFor = forwardedFor
  if (refused !== undefined) throw new GatewayError('network_unauthorized', refused)
}

/** Applies the policy about proxies in front of the gateway, if the listener has one. */
export function applyForwardedRules(
  context: RequestContext,
  { isTrustedProxy }: GatewayRuntime,
): undefined {
  const rules = context.listener?.frontend().client.forwarded
  if (rules === undefined) return
  const { exchange } = context
  exchange.forwardedFor = undefined
  const peer = exchange.source
  const trusts = rules.isTrusted ?? isTrustedProxy ?? trustsNone
  const isTrusted = rules.trustedHops !== undefined || trusts(peer.address)
  exchange.extensions.set(forwardingExtensions.trustsPeer, isTrusted)
  exchange.forwardedFor =
    rules.trustedHops === undefined
      ? forwardedClient(exchange.request, peer, trusts)
      : clientBeforeHops(exchange.request, rules.trustedHops)
  if (rules.headers !== 'Keep') writeForwarded(context, peer, isTrusted, rules.headers)
}

const trustsNone = () => false

/** Sets the headers that tell backends about the client, and removes those that the client may have forged. */
function writeForwarded(
  context: RequestContext,
  peer: Peer,
  isTrusted: boolean,
  mode: ForwardedRules['headers'],
): void {
  const { exchange } = context
  const { request, source, port } = exchange
  const { headers } = request
  context.keepOriginal()
  const list = [...headers.getAll('x-forwarded-for'), peer.address].join(', ')
  exchange.takeFields((name) => isAlias(name) || (!isTrusted && isAboutClient(name)))
  headers.set('x-forwarded-for', mode === 'Append' ? list : source.address)
  const defaults = {
    'x-forwarded-host': request.authority,
    'x-forwarded-port': String(port),
    'x-forwarded-proto': request.scheme,
    'x-forwarded-scheme': request.scheme,
    'x-real-ip': source.address,
  }
  for (const [name, value] of Object.entries(defaults)) {
    if (headers.get(name) === undefined) headers.set(name, value)
  }
  // The route may match these headers.
  context.isRouteKnown = false
}

/** Some backends treat `_` as `-`. A trusted proxy does not send such names, so they come from its client. */
const isAlias = (name: string): boolean =>
  name.includes('_') && isAboutClient(name.replaceAll('_', '-'))

const isAboutClient = (name: string): boolean =>
  name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'x-real-ip'
