/** Proxies that say the same name. */
import type { ProxyNode } from '../wire/discovery.ts'

interface Client {
  readonly node: ProxyNode
  readonly call: { getPeer(): string }
}

interface Namesake {
  /** For people. */
  readonly text: string
  /** Is it of another Gateway? Names count for all of them, so nobody takes that of a stranger's proxy. */
  readonly isStranger: boolean
}

/** What there is to say where a name is taken; undefined where it is not. */
export function namesakeOf(known: Client | undefined, newcomer: Client): Namesake | undefined {
  if (known === undefined) return undefined
  const { name, gateway } = known.node
  const { namespace, name: own } = newcomer.node.gateway
  if (gateway.namespace !== namespace || gateway.name !== own) {
    const text = `the name ${name} is that of a proxy of another Gateway: give each proxy a name of its own (SLUICE_PROXY_NAME)`
    return { text, isStranger: true }
  }
  const places = `from ${newcomer.call.getPeer()}, and its stream from ${known.call.getPeer()} is ended`
  const text = `proxy ${name} has come again, ${places}; where that goes on, several proxies have this name (SLUICE_PROXY_NAME)`
  return { text, isStranger: false }
}
