import { originText, parseOrigin } from '../../../ground/model/origin.ts'
import { type Infer, list, object, optional, text } from '../../../ground/schema/field.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

// Like the type ShortString, with a pattern for origins.
const originString = text({
  name: 'Origin',
  min: 1,
  max: 256,
  pattern: '^[A-Za-z][A-Za-z0-9+.-]*://(\\[[0-9A-Fa-f:.]+\\]|[^/:?#@\\[\\]\\s]+)(:[0-9]{1,5})?$',
  expects: 'an origin of the form <scheme>://<host>(:<port>)',
})

const csrfSchema = object('CSRF', {
  additionalOrigins: optional(
    list(originString, { min: 1, max: 16 }),
    'Origins that may send such requests, in addition to the destination itself. Scheme, host and port must be equal.',
  ),
})

/** An origin needs a port if its scheme has no default port; otherwise no request could match it. */
function compile({ additionalOrigins = [] }: Infer<typeof csrfSchema>) {
  const problems: PolicyProblem[] = []
  const origins = additionalOrigins.flatMap((text, index) => {
    const origin = parseOrigin(text)
    if (origin !== undefined) return [originText(origin)]
    const message = `${text} needs a port: its scheme has no default one`
    problems.push({ path: `additionalOrigins[${index}]`, message })
    return []
  })
  return { config: { additionalOrigins: origins }, problems }
}

/** Refuses cross-site requests, except those with safe methods. */
export const csrf = definePolicy({
  section: 'traffic',
  field: 'csrf',
  schema: csrfSchema,
  doc: 'Refuses cross-site requests that change something, by Sec-Fetch-Site or Origin.',
  security: true,
  changesRequest: false,
  compile,
  apply: () => import('./apply.ts'),
})
