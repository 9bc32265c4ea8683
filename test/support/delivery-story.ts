/** The fold with Gateways and proxies, one event after the other. */
import {
  configAcked,
  configRejected,
  createEvent,
  proxyConnected,
  proxyDisconnected,
  timerFired,
} from '../../events/index.ts'
import { FoldStory, type StoryObject } from './fold-story.ts'
import { allConditions } from './gateway.ts'

const gatewayApi = 'gateway.networking.k8s.io/v1'

/** A Gateway with one listener. */
export const edgeGateway = (port = 80): StoryObject => ({
  apiVersion: gatewayApi,
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    listeners: [{ name: 'http', port, protocol: 'HTTP' }],
    allowedListeners: { namespaces: { from: 'All' } },
  },
})

/** A story in which proxies take part. */
export class DeliveryStory extends FoldStory {
  connect(proxy: string, gatewayName?: string, stream?: string): this {
    const data = {
      proxy,
      ...(stream && { stream }),
      address: `192.0.2.${proxy.length}`,
      ...(gatewayName && { gateway: gatewayName }),
    }
    return this.record((context) =>
      createEvent(proxyConnected, context, { ...this.#content(), data }),
    )
  }

  disconnect(proxy: string, stream?: string): this {
    const data = { proxy, ...(stream && { stream }), reason: 'test' }
    return this.record((context) =>
      createEvent(proxyDisconnected, context, { ...this.#content(), data }),
    )
  }

  /** Everything up to now is in force, but for what is refused. */
  ack(proxy: string, refused: readonly string[] = [], sequence = this.fold.position): this {
    const data = { proxy, sequence, ...(refused.length > 0 && { refused }) }
    return this.record((context) => createEvent(configAcked, context, { ...this.#content(), data }))
  }

  reject(proxy: string, key: string, message: string): this {
    const data = { proxy, sequence: this.fold.position, key, code: 'port_in_use', message }
    return this.record((context) =>
      createEvent(configRejected, context, { ...this.#content(), data }),
    )
  }

  /** First sight of an object whose status in the cluster calls a generation programmed. */
  remembered(object: StoryObject, generation: number): this {
    const programmed = { generation, addresses: ['192.0.2.9'] }
    const { fold, events } = new FoldStory().apply(object)
    const seen = events[0]?.event
    if (seen?.type !== 'dev.sluice.resource.applied.v1') throw new Error(`at ${fold.position}`)
    return this.record(({ time }) => ({ ...seen, time, data: { ...seen.data, programmed } }))
  }

  /** Everything comes to pass that the fold waits for now. */
  elapse(): this {
    for (const data of this.fold.timers()) {
      this.record((context) => createEvent(timerFired, context, { ...this.#content(), data }))
    }
    return this
  }

  /** Message of the Programmed condition of the Gateway itself. */
  message(): string | undefined {
    const conditions = this.status('Gateway', 'edge')?.conditions as
      | { readonly type: string; readonly message: string }[]
      | undefined
    return conditions?.find(({ type }) => type === 'Programmed')?.message
  }

  /** `status/reason` of each Programmed condition: of the object, then of its listeners. */
  programmed(kind = 'Gateway', name = 'edge'): string[] {
    return allConditions(this.status(kind, name))
      .filter(({ type }) => type === 'Programmed')
      .map(({ status, reason }) => `${status}/${reason}`)
  }

  #content() {
    return { id: `d${this.events.length}`, subject: 'proxy' }
  }
}
