import { defineEvent, type EventOf } from './envelope.ts'

export interface ProxyConnectedData {
  readonly proxy: string
  readonly gateway?: string
  readonly stream?: string
  readonly replica?: string
  readonly address?: string
  readonly version?: string
}

export const proxyConnected = defineEvent<ProxyConnectedData>()({
  name: 'ProxyConnected',
  type: 'dev.sluice.proxy.connected.v1',
  version: 1,
  about: 'A proxy has opened its configuration stream.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`; absent where it serves all.',
    stream: 'The connection that this is about, unique; absent where there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; absent where there is only one.',
    address: 'The address on which it serves traffic, where it told one.',
    version: 'Version of the proxy.',
  },
})
export type ProxyConnected = EventOf<typeof proxyConnected>

export interface ProxyDisconnectedData {
  readonly proxy: string
  readonly gateway?: string
  readonly stream?: string
  readonly replica?: string
  readonly reason: string
}

export const proxyDisconnected = defineEvent<ProxyDisconnectedData>()({
  name: 'ProxyDisconnected',
  type: 'dev.sluice.proxy.disconnected.v1',
  version: 1,
  about:
    'The configuration stream of a proxy has ended, the proxy was silent for too long, or the replica that served it is gone.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it served, `namespace/name`.',
    stream: 'The connection that this is about, unique; absent where there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; absent where there is only one.',
    reason: 'Why, for people.',
  },
})
export type ProxyDisconnected = EventOf<typeof proxyDisconnected>

export interface ConfigAckedData {
  readonly proxy: string
  readonly gateway?: string
  readonly stream?: string
  readonly replica?: string
  readonly sequence: number
  readonly refused?: readonly string[]
}

export const configAcked = defineEvent<ConfigAckedData>()({
  name: 'ConfigAcked',
  type: 'dev.sluice.config.acked.v1',
  version: 1,
  about: 'A proxy has put in force everything up to a position of the log.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`.',
    stream: 'The connection that this is about, unique; absent where there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; absent where there is only one.',
    sequence: 'Watermark: the position up to which the configuration is in force.',
    refused:
      'Keys that the proxy still refuses at this position; one that is no longer named has recovered.',
  },
})
export type ConfigAcked = EventOf<typeof configAcked>

export interface ConfigRejectedData {
  readonly proxy: string
  readonly gateway?: string
  readonly stream?: string
  readonly replica?: string
  readonly sequence: number
  readonly key: string
  readonly code: string
  readonly message: string
}

export const configRejected = defineEvent<ConfigRejectedData>()({
  name: 'ConfigRejected',
  type: 'dev.sluice.config.rejected.v1',
  version: 1,
  about: 'A proxy refuses one wire resource and keeps the version that it had.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`.',
    stream: 'The connection that this is about, unique; absent where there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; absent where there is only one.',
    sequence: 'Position that the refused configuration belongs to.',
    key: 'Key of the wire resource.',
    code: 'Code from the error catalogue.',
    message: 'Why, for people; never a value.',
  },
})
export type ConfigRejected = EventOf<typeof configRejected>
