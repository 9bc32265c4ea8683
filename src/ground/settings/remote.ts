/** The settings that `sluice proxy` has in addition to those of every process that serves traffic. */
import { stdioProxySettings } from './stdio.ts'
import { requiredRow, row, type ValuesOf } from './table.ts'
import { controllers, host, objectName, path, proxyName } from './types.ts'

export const remoteSettings = {
  xdsAddress: requiredRow(controllers, {
    flag: 'xds-address',
    env: 'SLUICE_XDS_ADDRESS',
    doc: 'Addresses of the controllers. The proxy tries them in turn.',
  }),
  config: row(path, {
    flag: 'config',
    env: 'SLUICE_CONFIG_FILE',
    doc: 'YAML file whose `config` provides settings that neither flags nor the environment set. Keys are flag names, or variable names without `SLUICE_`, in camel case, and `logging` with `level` and `format`. The file is read once, at startup.',
  }),
  gateway: requiredRow(objectName, {
    flag: 'gateway',
    env: 'SLUICE_GATEWAY',
    doc: 'The Gateway that this proxy serves.',
  }),
  xdsTokenFile: row(path, {
    flag: 'xds-token-file',
    env: 'SLUICE_XDS_TOKEN_FILE',
    doc: 'File with the bearer token for the controller. It is read again for each connection.',
  }),
  xdsCaFile: row(path, {
    flag: 'xds-ca-file',
    env: 'SLUICE_XDS_CA_FILE',
    defaultText: 'none (plaintext)',
    doc: 'PEM file with the certificate authorities that verify the controller. It is read again for each connection. If omitted, the connection is plaintext.',
  }),
  stateDir: row(path, {
    flag: 'state-dir',
    env: 'SLUICE_STATE_DIR',
    defaultText: 'none (nothing is stored)',
    doc: 'Folder in which the proxy stores the last good configuration, including secret values. With it, the proxy can restart and serve while no controller is reachable.',
  }),
  proxyName: row(proxyName, {
    env: 'SLUICE_PROXY_NAME',
    defaultText: 'the host name and a random suffix, stored in `--state-dir`',
    doc: 'Stable name of the proxy in conditions and logs. It must be unique among all proxies.',
  }),
  advertiseAddress: row(host('an IP address or a host name'), {
    env: 'SLUICE_ADVERTISE_ADDRESS',
    defaultText: 'the bind address, or the first address of the machine if all are bound',
    doc: 'Address at which clients reach the proxy. A Gateway without a Service reports it in its status.',
  }),
  ...stdioProxySettings,
} as const

export type RemoteSettingName = keyof typeof remoteSettings
export type RemoteSettings = ValuesOf<typeof remoteSettings>
