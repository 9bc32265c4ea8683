/** The services that policies of a world call, on connections of their own. */
import type { Random } from '../../virtual-time/random.ts'
import { Machine, type World } from '../../virtual-time/world.ts'
import type { Violation } from '../checks.ts'
import { type Exchange, tagsInText } from '../exchange.ts'
import type { End, Network } from '../network.ts'
import { Upstream } from '../upstream.ts'
import { authorizeOverHttp, GrpcAuthorization } from './authorization.ts'
import { type CallHandler, type GrpcCall, GrpcService } from './grpc-service.ts'
import { HttpService, type HttpServiceOwner } from './http-service.ts'
import { ProcessorCall } from './processor.ts'
import { LimitCall } from './rate-limits.ts'
import { judge } from './webhooks.ts'

/** What services see of their world. */
export interface ServiceOwner {
  readonly world: World
  readonly random: Random
  readonly machine: Machine
  /** Finds the exchange of the first tag in a text. */
  exchangeOf(text: string): Exchange | undefined
  /** Checks that bytes that a service gets carry the tags of this exchange alone. */
  seen(exchange: Exchange, who: string, bytes: Uint8Array): void
  fail(invariant: Violation['invariant'], text: string): void
}

export const serviceNames = [
  'http-auth',
  'grpc-auth',
  'processor',
  'webhook',
  'rate-limits',
] as const
export type ServiceName = (typeof serviceNames)[number]
export const servicePort = 9_100
export const addressOf = (name: ServiceName) => ({
  host: `10.0.3.${1 + serviceNames.indexOf(name)}`,
  port: servicePort,
})

export interface ServiceWorld {
  readonly world: World
  readonly network: Network
  readonly random: Random
  exchangeOf(text: string): Exchange | undefined
  fail(invariant: Violation['invariant'], text: string): void
}

/** Starts all services. */
export function startServices(parts: ServiceWorld): Upstream[] {
  return serviceNames.map((name) => {
    const machine = new Machine(name)
    const owner = ownerOf(parts, machine)
    return new Upstream(machine, addressOf(name), parts.network, (_isHttp2, server, end) =>
      serve(name, server, end, owner),
    )
  })
}

function ownerOf(parts: ServiceWorld, machine: Machine): ServiceOwner {
  return {
    ...parts,
    machine,
    seen(exchange, who, bytes) {
      for (const tag of tagsInText(Buffer.from(bytes).toString('latin1'))) {
        if (tag !== exchange.tag) parts.fail('isolation', `${exchange.tag}: ${who} gets ${tag}`)
      }
    },
  }
}

function serve(name: ServiceName, server: Upstream, end: End, owner: ServiceOwner): void {
  const { world, random, fail } = owner
  const over = (onCall: (call: GrpcCall) => CallHandler) => {
    const frames = { world, random, onCall, fail: (text: string) => fail('framing', text) }
    new GrpcService(server, end, frames)
  }
  const plain = (onCall: HttpServiceOwner['onCall']) => {
    new HttpService(server, end, {
      world,
      random,
      onCall,
      fail: (text) => fail('framing', text),
    })
  }
  if (name === 'http-auth') plain((message) => authorizeOverHttp(message, owner))
  else if (name === 'webhook') plain((message) => judge(message, owner))
  else if (name === 'grpc-auth') over((call) => new GrpcAuthorization(call, owner))
  else if (name === 'processor') over((call) => new ProcessorCall(call, owner))
  else over((call) => new LimitCall(call, owner))
}
