/** GatewayBackends of A2A agents. */
import { isIpv4, isIpv6 } from '../../../../ground/base/ip-address.ts'
import type { McpPins } from '../../../../ground/model/mcp-targets.ts'
import {
  boolean,
  choice,
  list,
  object,
  optional,
  required,
  text,
} from '../../../../ground/schema/field.ts'
import { hostText } from '../../../../ground/schema/host.ts'
import { portNumber } from '../../../../ground/schema/shapes/references.ts'
import { preciseHostname } from '../../../../ground/schema/strings.ts'
import { defineBackend } from '../../define.ts'
import { approvedCardCondition, pinsOfCards } from './pinning.ts'

declare module '../../../../ground/model/resources.ts' {
  interface Destinations {
    readonly a2a: {
      readonly host: string
      readonly port: number
      readonly push: {
        /** Hosts that notifications may go to, in lower case; any if empty. */
        readonly hosts: readonly string[]
        /** Addresses and CIDRs that notifications may go to although they are not public. */
        readonly addresses: readonly string[]
        readonly allowHttp: boolean
      }
      readonly pinning?: 'Warn' | 'Block'
      /** The approved versions of cards that were seen, for `Block`. Clients get any version of other cards. */
      readonly pins?: readonly McpPins[]
    }
  }
}

const pushNotifications = object('A2APushNotifications', {
  hosts: optional(
    list(preciseHostname, { min: 1, max: 64 }),
    'Hosts that clients may name; any if not set.',
  ),
  addresses: optional(
    list(text({ min: 1, max: 64 }), { min: 1, max: 64 }),
    'Addresses and CIDRs that hosts may have although they are private, loopback or otherwise not public.',
  ),
  allowHttp: optional(boolean(), {
    doc: 'Whether URLs may have the scheme http.',
    default: false,
  }),
})

export const a2aBackend = defineBackend({
  field: 'a2a',
  type: 'a2a',
  doc: 'An agent that speaks the Agent2Agent protocol (A2A).',
  schema: object('A2ABackend', {
    host: required(hostText, 'Host name or address of the agent.'),
    port: required(portNumber, 'Port of the agent.'),
    pushNotifications: optional(
      pushNotifications,
      'Where the agent may send notifications for clients. If not set, only to https URLs with public addresses. Beyond the interface of agentgateway.',
    ),
    pinning: optional(
      choice('A2APinning', {
        Off: 'changes of the card are only recorded',
        Warn: 'the condition AgentApproved of the backend says that the card has changed',
        Block: 'clients also do not get a card that is not approved',
      }),
      {
        doc: 'What happens if the agent changes its card (`sluice tools`). The first card that the gateway sees is approved. Beyond the interface of agentgateway.',
        default: 'Off',
      },
    ),
  }),
  derive({ host, port, pinning, pushNotifications = {} }, reader) {
    const { hosts = [], addresses = [], allowHttp = false } = pushNotifications
    const valid = addresses.filter(isRange)
    const wrong = addresses.filter((entry) => !isRange(entry))
    const lists = reader.observedLists()
    const pinned = pinning === 'Warn' || pinning === 'Block' ? pinning : undefined
    const condition = pinned && approvedCardCondition(lists, pinned)
    const pins = pinned === 'Block' ? pinsOfCards(lists) : []
    return {
      destination: {
        host,
        port,
        push: { hosts: hosts.map((one) => one.toLowerCase()), addresses: valid, allowHttp },
        ...(pinned && { pinning: pinned }),
        ...(pins.length > 0 && { pins }),
      },
      problems: wrong.map(
        (entry) =>
          `pushNotifications.addresses: ${JSON.stringify(entry)} is neither an IP address nor a CIDR`,
      ),
      ...(condition && { conditions: [condition] }),
    }
  },
  address: ({ host, port }) => ({ host, port }),
  policy: { field: 'a2a', worksOnServices: false },
  streamProblem: () => 'it speaks HTTP only',
  choosesEndpoints: 'tasks belong to one agent',
})

/** Whether a text is an IP address or a CIDR. */
function isRange(entry: string): boolean {
  const [address = '', bits, ...more] = entry.split('/')
  if (more.length > 0 || !(isIpv4(address) || isIpv6(address))) return false
  const most = isIpv4(address) ? 32 : 128
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most)
}
