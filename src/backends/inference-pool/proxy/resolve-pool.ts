/** From a backendRef to an InferencePool to one of its endpoints. */
import { GatewayError } from '../../../errors/index.ts'
import { onceOver } from '../../../exchange/cleanup.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { takeAnswer } from '../../../exchange/interruption.ts'
import type { EndpointPicker } from '../../../model/inference-pools.ts'
import { BodyLedger } from '../../../policies/ext-proc/body-ledger.ts'
import { sendRequest } from '../../../policies/ext-proc/converse.ts'
import { answerIn, Processing } from '../../../policies/ext-proc/processing.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { atMember, usableAccess } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { upstreamVersion, versionOfAppProtocol } from '../../../proxy/upstream/http-version.ts'
import { candidates, destinationKey, namedIn, pickedFrom } from './picked.ts'
import { PoolCall } from './pool-call.ts'
import type { Pool } from './pools.ts'

/**
 * Sets the destination of the request; the first time (`call` is undefined), the picker of the pool is
 * asked for it, and may answer instead. `begun` gets the conversation. Throws or rejects with `backend_invalid`, `policy_unenforceable`, `no_endpoints`,
 * `overloaded` or `endpoint_picker_failed`.
 */
export function resolvePool(
  context: RequestContext,
  runtime: GatewayRuntime,
  pool: Pool | undefined,
  call: PoolCall | undefined,
  begun: (call: PoolCall) => void,
): undefined | Promise<RespondVerdict | undefined> {
  const { backend, placement } = context
  if (backend === undefined || placement === undefined) throw new GatewayError('no_backends')
  const { picker, unusable } = pool?.resource ?? {}
  if (pool === undefined || picker === undefined) {
    throw new GatewayError('backend_invalid', unusable ?? backend.name)
  }
  const access = usableAccess(placement, backend)
  if (call === undefined) return askPicker(context, runtime, { pool, picker, access }, begun)
  setDestination(context, runtime, call, access)
  return undefined
}

interface UsablePool {
  readonly pool: Pool
  readonly picker: EndpointPicker
  readonly access: BackendAccess
}

async function askPicker(
  context: RequestContext,
  runtime: GatewayRuntime,
  { pool, picker, access }: UsablePool,
  begun: (call: PoolCall) => void,
): Promise<RespondVerdict | undefined> {
  const { exchange, backend } = context
  const name = backend?.name ?? ''
  if (pool.endpoints().size === 0) throw new GatewayError('no_endpoints', name)
  let named: string | undefined
  const processing = new Processing({
    target: picker.target,
    exchange,
    callouts: runtime.callouts,
    isPicker: true,
    learn: (metadata) => {
      named = namedIn(metadata) ?? named
    },
  })
  onceOver(exchange, () => processing.close())
  const mayFail = picker.failureMode === 'FailOpen'
  if (mayFail) processing.request.ledger = new BodyLedger(exchange.bufferLimit)
  // Once there is an answer, the picker has nothing to say that it would be worth losing for.
  processing.response.ledger = new BodyLedger(exchange.bufferLimit)
  const call = new PoolCall(name, pool, picker, processing)
  begun(call)
  context.keepOriginal()
  // What the picker says counts, not what a client has made up.
  exchange.request.headers.remove(destinationKey)
  try {
    await sendRequest(exchange, processing, candidates(pool, runtime.cap?.most))
    const text = named ?? exchange.request.headers.get(destinationKey)
    const picked = pickedFrom(text, pool.endpoints())
    if (typeof picked !== 'string') call.picked(picked)
    else if (mayFail) call.settle('fail_open', picked)
    else throw new GatewayError('endpoint_picker_failed', picked)
  } catch (error) {
    const answer = answerIn(error)
    if (answer !== undefined) {
      takeAnswer(exchange)
      call.settle('answered')
      return answer
    }
    failOver(call, processing, error, mayFail)
  }
  setDestination(context, runtime, call, access)
  return undefined
}

/** Goes on without the picker, or throws. */
function failOver(call: PoolCall, processing: Processing, error: unknown, mayFail: boolean): void {
  const problem = error instanceof Error ? error.message : String(error)
  const isPickers = error instanceof GatewayError && error.code === 'endpoint_picker_failed'
  const goesOn = isPickers && mayFail && processing.request.goOnAlone()
  call.settle(goesOn ? 'fail_open' : 'fail_closed', problem)
  processing.close()
  if (!goesOn) throw error
}

function setDestination(
  context: RequestContext,
  runtime: GatewayRuntime,
  call: PoolCall,
  access: BackendAccess,
): void {
  const { resource } = call.pool
  const endpoint = call.next(runtime)
  if (endpoint === undefined || resource === undefined) {
    throw new GatewayError('no_endpoints', call.name)
  }
  const { name, namespace, appProtocol } = resource
  const host = `${name}.${namespace}.inference.${runtime.resolver.clusterDomain}`
  const { connection } = access.policies
  const ofPort = versionOfAppProtocol(appProtocol)
  const version = upstreamVersion(connection, context.exchange.request, ofPort)
  context.destination = atMember(runtime, access, {
    host,
    port: endpoint.address.port,
    endpoint,
    version,
  })
}
