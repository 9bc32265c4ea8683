import type { Infer } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { corsFilter } from '../../schema/shapes/cors.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { CorsConfig } from './apply.ts'

const corsSchema = corsFilter
type CorsSpec = Infer<typeof corsSchema>

const corsField = sectionField({
  section: 'traffic',
  field: 'cors',
  schema: corsSchema,
  doc: 'Answers preflight requests and adds the CORS response headers (HTTPRoute CORS filter).',
})

/** Seconds (Gateway API, HTTPCORSFilter.maxAge). */
const defaultMaxAge = 5

const form = /^(https?):\/\/([^/:]+)(?::([0-9]+))?$/i
const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** An origin that can never be met is named, and left out; the others hold. */
function compile(spec: CorsSpec): Compiled<CorsConfig> {
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

/** Answers preflight requests, and tells browsers which origins may read responses. */
export const cors = definePolicy(corsField, {
  security: false,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
