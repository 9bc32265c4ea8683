/** The settings of `sluice proxy` beside those of every process that carries traffic. */
import { readAddress, readHost, readPath } from './readers.ts'
import { row } from './row.ts'

/** `host:port`, several with commas between; the port cannot be 0. */
function readControllers(text: string): readonly string[] | undefined {
  const addresses = text.split(',').map((part) => part.trim())
  const isController = (address: string) =>
    address !== 'off' && !address.startsWith(':') && !/:0+$/.test(address) && readAddress(address)
  return addresses.every(isController) ? addresses : undefined
}

const namePattern = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/

/** `namespace/name` of a Kubernetes object. */
function readObjectName(text: string): { namespace: string; name: string } | undefined {
  const [namespace = '', name = '', ...rest] = text.split('/')
  const isValid = rest.length === 0 && [namespace, name].every((part) => namePattern.test(part))
  return isValid ? { namespace, name } : undefined
}

const readProxyName = (text: string) => (namePattern.test(text) ? text : undefined)

/** What a proxy of a controller needs beside the settings above. */
export const remoteSettings = {
  xdsAddress: row<readonly string[] | undefined>({
    flag: 'xds-address',
    env: 'SLUICE_XDS_ADDRESS',
    form: '`host:port`, several with commas between',
    isList: true,
    read: readControllers,
    default: undefined,
    defaultText: 'none; required',
    doc: 'Controllers, tried in turn.',
  }),
  config: row<string | undefined>({
    flag: 'config',
    env: 'SLUICE_CONFIG_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none',
    doc: 'YAML whose `config` sets what neither flags nor the environment set: settings by the name of their flag, or of their variable without `SLUICE_`, in camel case, and `logging` with `level` and `format`. Read at the start.',
  }),
  gateway: row<{ readonly namespace: string; readonly name: string } | undefined>({
    flag: 'gateway',
    env: 'SLUICE_GATEWAY',
    form: '`namespace/name`',
    read: readObjectName,
    default: undefined,
    defaultText: 'none; required',
    doc: 'The Gateway whose traffic is served.',
  }),
  xdsTokenFile: row<string | undefined>({
    flag: 'xds-token-file',
    env: 'SLUICE_XDS_TOKEN_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none',
    doc: 'Bearer token for the controller; read again for each connection.',
  }),
  xdsCaFile: row<string | undefined>({
    flag: 'xds-ca-file',
    env: 'SLUICE_XDS_CA_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none: plaintext',
    doc: 'Authorities (PEM) from which the certificate of the controller must come; read again for each connection. The connection is TLS exactly where it is set.',
  }),
  stateDir: row<string | undefined>({
    flag: 'state-dir',
    env: 'SLUICE_STATE_DIR',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none: nothing is kept',
    doc: 'Folder for the last good configuration, secret values included, so that the proxy serves after a restart without a controller.',
  }),
  proxyName: row<string | undefined>({
    env: 'SLUICE_PROXY_NAME',
    form: 'a DNS name',
    read: readProxyName,
    default: undefined,
    defaultText: 'the host name and a random part, which `--state-dir` keeps',
    doc: 'Stable name of the proxy in conditions and logs, unique among all proxies.',
  }),
  advertiseAddress: row<string | undefined>({
    env: 'SLUICE_ADVERTISE_ADDRESS',
    form: 'an IP address or a host name',
    read: readHost,
    default: undefined,
    defaultText: 'the bind address, or the first of the machine where all are bound',
    doc: 'Where clients reach the proxy; the address of a Gateway that has no Service of its own.',
  }),
} as const
