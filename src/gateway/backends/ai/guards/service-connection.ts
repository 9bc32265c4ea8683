/** The connection to a service: a backend with its own policies, or a host with policies of the guard. */
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import { CopiedExchange } from '../../../../ground/exchange/derived.ts'
import type {
  Callouts,
  CalloutTarget,
  Exchange,
  RequestHead,
} from '../../../../ground/exchange/exchange.ts'
import { Extensions } from '../../../../ground/exchange/extensions.ts'
import { FieldPairs, MemoryBody } from '../../../../ground/exchange/memory-message.ts'
import { machineTls } from '../../../policies/backend-simple/tls/machine-tls.ts'
import type { Step } from '../../../policies/define.ts'
import { bytesOf, callGuard, guardFailure, jsonType } from './guard-call.ts'

export interface ServiceConnection {
  /** Sends a POST, and returns the body of the answer. @throws GatewayError prompt_guard_failed */
  send(path: string, body: JsonObject, exchange: Exchange): Promise<string>
}

export const toTarget = (target: CalloutTarget, callouts: Callouts): ServiceConnection => ({
  send: (path, body) =>
    callGuard(callouts, { target, path, headers: [jsonType], body: bytesOf(body) }),
})

/** Calls a host with TLS. */
export class HostConnection implements ServiceConnection {
  readonly #host: string
  readonly #steps: readonly Step[]
  readonly #callouts: Callouts
  #settings: ConnectionSettings | undefined

  /** `steps` are the policies of the connection, which add credentials or sign the call. */
  constructor(host: string, steps: readonly Step[], callouts: Callouts) {
    this.#host = host
    this.#steps = steps
    this.#callouts = callouts
  }

  async send(path: string, content: JsonObject, exchange: Exchange): Promise<string> {
    const body = bytesOf(content)
    const call = new ServiceExchange(exchange, this.#host, path, body)
    for (const step of this.#steps) {
      const verdict = await step.onRequest?.(call)
      if (verdict?.kind === 'respond') throw guardFailure('the call has no credential')
    }
    const settings = this.#connection()
    const port = settings.tls === undefined ? 80 : 443
    return callGuard(this.#callouts, {
      target: { type: 'server', host: this.#host, port, settings },
      path,
      headers: [...call.request.headers.entries()],
      body,
    })
  }

  /** Creates the settings at the first call, because reading the machine's CA certificates takes time. */
  #connection(): ConnectionSettings {
    this.#settings ??= Object.assign(
      { tls: machineTls() },
      ...this.#steps.map(({ connection }) => connection),
    ) as ConnectionSettings
    return this.#settings
  }
}

/** The exchange that the policies of the connection process: the call to the service. */
export class ServiceExchange extends CopiedExchange {
  readonly request: RequestHead
  readonly requestBody: MemoryBody
  readonly peerCertificate: Exchange['peerCertificate']
  readonly isOver = false
  readonly learned: Exchange['learned']
  readonly extensions = new Extensions()

  constructor(exchange: Exchange, host: string, target: string, body: Uint8Array) {
    super(exchange)
    const [path = '', query] = target.split('?', 2)
    this.request = {
      method: 'POST',
      scheme: 'https',
      authority: host,
      path,
      query,
      version: '1.1',
      headers: new FieldPairs([jsonType]),
    }
    this.requestBody = new MemoryBody(body)
    this.peerCertificate = exchange.peerCertificate
    this.learned = exchange.learned
  }
}
