import { originText, parseOrigin } from '../../model/origin.ts'
import { type Infer, list, object, optional, text } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { CsrfConfig } from './apply.ts'

// A ShortString of this form.
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
    'Origins that may send such requests beside the destination itself; scheme, host and port must agree.',
  ),
})
type CsrfSpec = Infer<typeof csrfSchema>

const csrfField = sectionField({
  section: 'traffic',
  field: 'csrf',
  schema: csrfSchema,
  doc: 'Refuses cross-site requests that change something, by Sec-Fetch-Site or Origin.',
})

/** An origin without a port that is known for its scheme can never be met, which is a problem. */
function compile({ additionalOrigins = [] }: CsrfSpec): Compiled<CsrfConfig> {
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

/** Refuses cross-site requests that change something. */
export const csrf = definePolicy(csrfField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
