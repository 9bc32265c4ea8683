/** Settings of MCP servers that are commands. They are off unless one of these turns them on. */
import { row } from './table.ts'
import { boolean, loopbackAddress, oneOf, path, processUser } from './types.ts'

/** Of a gateway that starts the servers itself (`sluice run`). */
export const stdioSettings = {
  stdioServers: row(boolean, {
    flag: 'stdio-servers',
    env: 'SLUICE_STDIO_SERVERS',
    default: false,
    doc: 'Whether the gateway runs the commands of [`stdio` targets](mcp.md#servers-that-are-commands). If `true`, anyone who can write the manifests runs programs as the user of the gateway. Only in `sluice run` and `sluice mcp run`.',
  }),
  stdioUser: row(processUser, {
    flag: 'stdio-user',
    env: 'SLUICE_STDIO_USER',
    defaultText: 'the user of the gateway',
    doc: 'User and group id of `stdio` servers, as `UID` or `UID:GID`. The gateway must run as root.',
  }),
} as const

/** Of a proxy beside a `sluice stdio`. The controller sets them. */
export const stdioProxySettings = {
  stdioAddress: row(loopbackAddress, {
    env: 'SLUICE_STDIO_ADDRESS',
    defaultText: 'none: `stdio` targets are not served',
    doc: 'Loopback address of the `sluice stdio` that runs the commands of `stdio` targets.',
  }),
  stdioTokenFile: row(path, {
    env: 'SLUICE_STDIO_TOKEN_FILE',
    doc: 'File with the token of that `sluice stdio`, which writes it when it starts.',
  }),
  stdioNamespaces: row(oneOf('Same', 'All'), {
    env: 'SLUICE_STDIO_NAMESPACES',
    default: 'Same',
    doc: 'Which GatewayBackends may have commands: those in the namespace of the Gateway (`Same`), or in any namespace (`All`).',
  }),
} as const
