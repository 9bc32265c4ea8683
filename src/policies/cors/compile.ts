import type { Compiled, PolicyProblem } from '../define.ts'
import type { CorsConfig } from './config.ts'
import type { CorsSpec } from './schema.ts'

/** Seconds (Gateway API, HTTPCORSFilter.maxAge). */
const defaultMaxAge = 5

const form = /^(https?):\/\/([^/:]+)(?::([0-9]+))?$/i
const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** An origin that can never be met is named, and left out; the others hold. */
export function compile(spec: CorsSpec): Compiled<CorsConfig> {
  const problems: PolicyProblem[] = []
  const origins = (spec.allowOrigins ?? []).flatMap((text, index) => {
    const origin = text === '*' ? text : normalize(text)
    if (origin !== undefined) return [origin]
    const message = `${text} names a port that does not exist; ports are 1 to 65535`
    problems.push({ path: `allowOrigins[${index}]`, message })
    return []
  })
  const config: CorsConfig = {
    origins,
    credentials: spec.allowCredentials === true,
    methods: spec.allowMethods ?? [],
    requestHeaders: spec.allowHeaders ?? [],
    responseHeaders: spec.exposeHeaders ?? [],
    maxAge: spec.maxAge ?? defaultMaxAge,
  }
  return { config, problems }
}

function normalize(text: string): string | undefined {
  const [, scheme = '', host = '', given] = form.exec(text.toLowerCase()) ?? []
  const port = Number(given ?? defaultPorts[scheme])
  return port >= 1 && port <= 65_535 ? `${scheme}://${host}:${port}` : undefined
}
