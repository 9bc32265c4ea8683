import { choice, type Infer, object, optional, text } from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { durationOrZero } from '../../../ground/schema/strings.ts'

interface Persistence {
  readonly type?: string
  readonly absoluteTimeout?: string
  readonly cookieConfig?: { readonly lifetimeType?: string }
}

/** Gateway API session persistence (GEP-1619, experimental). */
export const sessionPersistence = object(
  'SessionPersistence',
  {
    sessionName: optional(text({ max: 128 }), 'Name of the cookie or header.'),
    absoluteTimeout: optional(durationOrZero, 'Longest life of a session.'),
    type: optional(choice('SessionPersistenceType', { Cookie: '', Header: '' }), {
      doc: 'What carries the session.',
      fill: 'Cookie',
    }),
    cookieConfig: optional(
      object('CookieConfig', {
        lifetimeType: optional(
          choice('CookieLifetimeType', {
            Permanent: 'has an end',
            Session: 'ends with the browser session',
          }),
          { doc: 'Life of the cookie.', fill: 'Session' },
        ),
      }),
      'Settings for Cookie.',
    ),
  },
  {
    rules: [
      rule<Persistence>({
        message: 'absoluteTimeout must be specified when cookie lifetimeType is Permanent',
        holds: ({ cookieConfig, absoluteTimeout }) =>
          cookieConfig?.lifetimeType !== 'Permanent' || absoluteTimeout !== undefined,
      }),
      rule<Persistence>({
        message: 'cookieConfig can only be set with type Cookie',
        holds: ({ type, cookieConfig }) =>
          cookieConfig === undefined || (type ?? 'Cookie') === 'Cookie',
      }),
    ],
  },
)
export type SessionPersistenceSpec = Infer<typeof sessionPersistence>
