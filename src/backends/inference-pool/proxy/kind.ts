/** InferencePools: an endpoint picker chooses the endpoint of each request. */
import type { GatewayError } from '../../../errors/index.ts'
import type { Exchange, RespondVerdict } from '../../../exchange/exchange.ts'
import type { BackendCall } from '../../../proxy/request/backend-call.ts'
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { PoolCall } from './pool-call.ts'
import { PoolTable } from './pools.ts'
import { resolvePool } from './resolve-pool.ts'

/** Expressions see the Services that pools stand for. */
export function poolKind(runtime: GatewayRuntime): BackendKind {
  const pools = new PoolTable()
  return {
    type: 'service',
    protocol: 'http',
    onlyFor: 'requests of an HTTPRoute',
    resources: ['pool', 'pod'],
    set: (resource, old) => pools.set(resource, old),
    remove: (resource) => pools.remove(resource),
    begin: (context) => new InferencePoolCall(context, runtime, pools),
  }
}

class InferencePoolCall implements BackendCall {
  readonly #context: RequestContext
  readonly #runtime: GatewayRuntime
  readonly #pools: PoolTable
  /** The conversation with the picker; undefined before it is asked. */
  #call: PoolCall | undefined

  constructor(context: RequestContext, runtime: GatewayRuntime, pools: PoolTable) {
    this.#context = context
    this.#runtime = runtime
    this.#pools = pools
  }

  get record(): PoolCall | undefined {
    return this.#call
  }

  resolve(): undefined | Promise<RespondVerdict | undefined> {
    const pool = this.#pools.find(this.#context.backend?.name ?? '')
    return resolvePool(this.#context, this.#runtime, pool, this.#call, (call) => {
      this.#call = call
    })
  }

  hasAnother(failure: number | GatewayError): boolean {
    return this.#call?.hasAnother(failure) ?? false
  }

  /** The picker learns of the response, and may change it. */
  changeResponse(exchange: Exchange): Promise<void> | undefined {
    return this.#call?.onResponse(exchange)
  }
}
