import { type Infer, list, object, optional, text } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'

// A ShortString of this form.
const originString = text({
  name: 'Origin',
  min: 1,
  max: 256,
  pattern: '^[A-Za-z][A-Za-z0-9+.-]*://(\\[[0-9A-Fa-f:.]+\\]|[^/:?#@\\[\\]\\s]+)(:[0-9]{1,5})?$',
  expects: 'an origin of the form <scheme>://<host>(:<port>)',
})

const csrf = object('CSRF', {
  additionalOrigins: optional(
    list(originString, { min: 1, max: 16 }),
    'Origins that may send such requests beside the destination itself; scheme, host and port must agree.',
  ),
})
export type CsrfSpec = Infer<typeof csrf>

export const csrfField = sectionField({
  section: 'traffic',
  field: 'csrf',
  schema: csrf,
  doc: 'Refuses cross-site requests that change something, by Sec-Fetch-Site or Origin.',
})
