import type { Infer } from '../../../ground/schema/field.ts'
import { corsFilter } from '../../../ground/schema/shapes/cors.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

/** Default in seconds (Gateway API, HTTPCORSFilter.maxAge). */
const defaultMaxAge = 5

const form = /^(https?):\/\/([^/:]+)(?::([0-9]+))?$/i
const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** Leaves out origins that no request can have, and reports them. */
function compile(spec: Infer<typeof corsFilter>) {
  const problems: PolicyProblem[] = []
  const origins = (spec.allowOrigins ?? []).flatMap((text, index) => {
    const origin = text === '*' ? text : normalize(text)
    if (origin !== undefined) return [origin]
    const message = `${text} names a port that does not exist; ports are 1 to 65535`
    problems.push({ path: `allowOrigins[${index}]`, message })
    return []
  })
  const config = {
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

/** Answers preflight requests, and adds the headers from which browsers learn which origins may read responses. */
export const cors = definePolicy({
  section: 'traffic',
  field: 'cors',
  schema: corsFilter,
  doc: 'Answers preflight requests and adds the CORS response headers (HTTPRoute CORS filter).',
  security: false,
  changesRequest: false,
  preRouting: true,
  compile,
  apply: () => import('./apply.ts'),
})
