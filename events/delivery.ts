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
  about: 'A proxy opened its configuration stream.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`; omitted if it serves all.',
    stream: 'Unique id of the connection; omitted if there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; omitted if there is only one replica.',
    address: 'The address on which it serves traffic, if it reported one.',
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
    'The configuration stream of a proxy ended, the proxy was silent for too long, or the replica that served it disappeared.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it served, `namespace/name`.',
    stream: 'Unique id of the connection; omitted if there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; omitted if there is only one replica.',
    reason: 'The reason, as text for people.',
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
  about: 'A proxy has applied the configuration up to a position of the log.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`.',
    stream: 'Unique id of the connection; omitted if there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; omitted if there is only one replica.',
    sequence: 'Watermark: the position up to which the configuration is applied.',
    refused:
      'Keys of resources that the proxy still rejects at this position; a key that is no longer listed has recovered.',
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
  about: 'A proxy rejects one wire resource and keeps the previous version.',
  fields: {
    proxy: 'Stable name of the proxy.',
    gateway: 'The Gateway that it serves, `namespace/name`.',
    stream: 'Unique id of the connection; omitted if there is only one.',
    replica:
      'The run of the replica that the proxy is connected to; omitted if there is only one replica.',
    sequence: 'Position of the rejected configuration.',
    key: 'Key of the wire resource.',
    code: 'Code from the error catalogue.',
    message: 'The reason, as text for people; never contains a value.',
  },
})
export type ConfigRejected = EventOf<typeof configRejected>
