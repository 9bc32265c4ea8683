import { object, required, text } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

/** Refuses requests without a header. */
export const requireHeader = definePolicy({
  section: 'traffic',
  field: 'requireHeader',
  schema: object('RequireHeader', {
    name: required(text({ min: 1, max: 256 }), 'Name of the header.'),
  }),
  doc: 'Refuses requests without a header.',
  security: true,
  compile: ({ name }) => ({ config: { name: name.toLowerCase() }, problems: [] }),
  apply: () => import('./apply.ts'),
})
