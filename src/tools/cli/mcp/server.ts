/** Reads the arguments of `sluice mcp add`. */
import { UsageError } from '../shared/output.ts'

/** A server at a URL, or a command that is a server. */
export type AddedServer = AddedUrl | AddedCommand

interface AddedUrl {
  readonly name: string
  readonly url: URL
  readonly protocol: 'StreamableHTTP' | 'SSE'
  /** The value of the Authorization header that the server gets; undefined if it gets none. */
  readonly authorization: string | undefined
}

interface AddedCommand {
  readonly name: string
  readonly command: readonly string[]
}

export interface ServerOptions {
  readonly url?: string
  readonly transport?: 'http' | 'sse'
  /** `NAME: VALUE` each. */
  readonly header: readonly string[]
  /** The environment variable with the key of the server. */
  readonly keyEnv?: string
}

/**
 * @param rest the URL, or the words of a command
 * @throws UsageError
 */
export function serverOf(
  name: string,
  rest: readonly string[],
  options: ServerOptions,
): AddedServer {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
    throw new UsageError(`${name}: a name has lower-case letters, digits and -, at most 63`)
  }
  const [first = ''] = rest
  if (options.url === undefined && first !== '' && !/^https?:\/\//.test(first)) {
    requireNoHttp(first, options)
    return { name, command: rest }
  }
  const url = urlOf(name, options.url === undefined ? rest : [options.url, ...rest])
  const isOlder = options.transport === undefined && url.pathname.endsWith('/sse')
  return {
    name,
    url,
    protocol: isOlder || options.transport === 'sse' ? 'SSE' : 'StreamableHTTP',
    authorization: authorizationOf(options),
  }
}

function urlOf(name: string, [text, ...more]: readonly string[]): URL {
  if (text === undefined) {
    throw new UsageError(
      `name the address of the server: sluice mcp add ${name} --url https://HOST/mcp`,
    )
  }
  if (more.length > 0 || !/^https?:\/\//.test(text)) {
    throw new UsageError(`${[text, ...more].join(' ')} is not a URL`)
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) throw new UsageError(`${text} is not a URL`)
  if (url.port === '0') throw new UsageError(`${text}: no server has port 0`)
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(
      `${url.origin}: write the credential as --header 'Authorization: …' or --key-env VARIABLE`,
    )
  }
  if (url.search !== '' || url.hash !== '') {
    throw new UsageError(`${text}: a URL with a query or a fragment is not supported`)
  }
  return url
}

/** Options of servers over HTTP mean nothing for a command. */
function requireNoHttp(command: string, { transport, header, keyEnv }: ServerOptions): void {
  const given = { '--transport': transport, '--header': header[0], '--key-env': keyEnv }
  const [wrong] = Object.entries(given).find(([, value]) => value !== undefined) ?? []
  if (wrong === undefined) return
  throw new UsageError(`${wrong}: ${command} is a command; write its variables into the file`)
}

function authorizationOf({ header, keyEnv }: ServerOptions): string | undefined {
  const values = header.map((text) => {
    const [, name = '', value = ''] = /^([^:\s]+):\s*(.*\S)\s*$/.exec(text) ?? []
    if (name === '') throw new UsageError(`--header ${text}: expected 'NAME: VALUE'`)
    if (name.toLowerCase() === 'authorization') return value
    throw new UsageError(`--header ${name}: only Authorization can be sent to a server`)
  })
  if (keyEnv !== undefined) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(keyEnv)) {
      throw new UsageError(`--key-env ${keyEnv}: expected the name of an environment variable`)
    }
    values.push(`\${env:${keyEnv}}`)
  }
  if (values.length > 1) throw new UsageError('name one credential: one --header or one --key-env')
  return values[0]
}
