/** `sluice mcp`: a gateway for MCP servers on this machine, to which servers are added by name. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { stateFolder } from '../../../control/plane/open-log.ts'
import { besideOthers, type ClientKeyOptions, clientKeyOf } from '../local/gateway.ts'
import { type RunOptions, run } from '../run/run.ts'
import { exitCode, type Output, table, UsageError } from '../shared/output.ts'
import { type ServerOptions, serverOf } from './server.ts'
import { ServerFile } from './server-file.ts'

export interface FileOption {
  readonly file?: string
}

export interface AddOptions extends FileOption, ServerOptions, ClientKeyOptions {
  readonly port?: number
  readonly print?: boolean
}

const defaultPort = 4001

const pathOf = ({ file }: FileOption): string =>
  file ?? join(stateFolder(), 'mcp', 'manifests.yaml')

/** Adds a server to the file, which is created with the first one. @throws UsageError */
export function addServer(
  name: string,
  rest: readonly string[],
  options: AddOptions,
  output: Output,
): number {
  const path = pathOf(options)
  const server = serverOf(name, rest, options)
  const known = ServerFile.read(path)
  if (known !== undefined && options.port !== undefined && options.port !== known.port) {
    throw new UsageError(`--port: ${path} has port ${known.port} already`)
  }
  const key = known === undefined ? clientKeyOf(options) : undefined
  const file = known ?? ServerFile.create(path, options.port ?? defaultPort, key?.hash)
  file.add(server)
  if (options.print === true) {
    output.print(file.text().trimEnd())
    if (key?.isNew === true) output.report(`key of clients: ${key.shown}`)
    return exitCode.success
  }
  file.write()
  output.report(`added ${name} to ${path}`)
  if (known !== undefined) {
    if ('command' in server) output.report(`${name} runs if the gateway has --stdio-servers true`)
    return exitCode.success
  }
  const header = key === undefined ? '' : ` --header "Authorization: Bearer ${key.shown}"`
  output.report('')
  output.report('Start the gateway, and point your clients at it:')
  const enabling = 'command' in server ? ' --stdio-servers true' : ''
  output.report(`  sluice mcp run${options.file === undefined ? '' : ` -f ${path}`}${enabling}`)
  output.report(
    `  claude mcp add --transport http sluice http://127.0.0.1:${file.port}/mcp${header}`,
  )
  return exitCode.success
}

/** @throws UsageError */
export function removeServer(name: string, options: FileOption, output: Output): number {
  const file = existing(options)
  file.remove(name)
  file.write()
  output.report(`removed ${name} from ${file.path}`)
  return exitCode.success
}

/** @throws UsageError */
export function listServers(options: FileOption, output: Output): number {
  const servers = existing(options).servers()
  output.print(table(servers.map(({ name, url }) => [name, url])))
  return exitCode.success
}

export function runServers(
  { file, ...options }: FileOption & Omit<RunOptions, 'file'>,
  output: Output,
): Promise<number> {
  const { path } = existing({ file })
  return run({ ...besideOthers, ...options, file: [path] }, output)
}

function existing(options: FileOption): ServerFile {
  const path = pathOf(options)
  const file = existsSync(path) ? ServerFile.read(path) : undefined
  if (file !== undefined) return file
  throw new UsageError(
    `no server was added to ${path}; add one: sluice mcp add NAME --url https://HOST/mcp`,
  )
}
