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
    form: '`host:port`, or several separated by commas',
    isList: true,
    read: readControllers,
    default: undefined,
    defaultText: 'none; required',
    doc: 'Addresses of the controllers. The proxy tries them in turn.',
  }),
  config: row<string | undefined>({
    flag: 'config',
    env: 'SLUICE_CONFIG_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none',
    doc: 'YAML file whose `config` provides settings that neither flags nor the environment set. Keys are flag names, or variable names without `SLUICE_`, in camel case, and `logging` with `level` and `format`. The file is read once, at startup.',
  }),
  gateway: row<{ readonly namespace: string; readonly name: string } | undefined>({
    flag: 'gateway',
    env: 'SLUICE_GATEWAY',
    form: '`namespace/name`',
    read: readObjectName,
    default: undefined,
    defaultText: 'none; required',
    doc: 'The Gateway that this proxy serves.',
  }),
  xdsTokenFile: row<string | undefined>({
    flag: 'xds-token-file',
    env: 'SLUICE_XDS_TOKEN_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none',
    doc: 'File with the bearer token for the controller. It is read again for each connection.',
  }),
  xdsCaFile: row<string | undefined>({
    flag: 'xds-ca-file',
    env: 'SLUICE_XDS_CA_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none (plaintext)',
    doc: 'PEM file with the certificate authorities that verify the controller. It is read again for each connection. If omitted, the connection is plaintext.',
  }),
  stateDir: row<string | undefined>({
    flag: 'state-dir',
    env: 'SLUICE_STATE_DIR',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'none (nothing is stored)',
    doc: 'Folder in which the proxy stores the last good configuration, including secret values. With it, the proxy can restart and serve while no controller is reachable.',
  }),
  proxyName: row<string | undefined>({
    env: 'SLUICE_PROXY_NAME',
    form: 'a DNS name',
    read: readProxyName,
    default: undefined,
    defaultText: 'the host name and a random suffix, stored in `--state-dir`',
    doc: 'Stable name of the proxy in conditions and logs. It must be unique among all proxies.',
  }),
  advertiseAddress: row<string | undefined>({
    env: 'SLUICE_ADVERTISE_ADDRESS',
    form: 'an IP address or a host name',
    read: readHost,
    default: undefined,
    defaultText: 'the bind address, or the first address of the machine if all are bound',
    doc: 'Address at which clients reach the proxy. A Gateway without a Service reports it in its status.',
  }),
} as const
