/** The string types that many fields share. */
import { text, withRules } from './field.ts'
import { rule } from './rules.ts'

export const shortString = text({ name: 'ShortString', min: 1, max: 256 })
export const tinyString = text({ name: 'TinyString', min: 1, max: 64 })
export const longString = text({ name: 'LongString', min: 1, max: 1024 })

/** Source text of an expression. It is compiled only with the policy, not when the schema is checked. */
export const celExpression = text({ name: 'CELExpression', min: 1, max: 16_384 })

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const dnsName = `${label}(\\.${label})*`

/** A duration (GEP-2257), or else source text of an expression. */
export const durationOrExpression = text({ name: 'DurationOrCELExpression', min: 1, max: 16_384 })

export const sni = text({
  name: 'SNI',
  min: 1,
  max: 253,
  pattern: `^${dnsName}$`,
  expects: 'a lowercase DNS name',
})

// Matches a token (RFC 9110 section 5.6.2).
const token = "[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+"

/** A field name, or one of the HTTP/2 pseudo-headers (RFC 9113 section 8.3). */
export const headerName = text({
  name: 'HeaderName',
  min: 1,
  max: 256,
  pattern: `^(:(authority|method|path|scheme|status)|${token})$`,
  expects: 'an HTTP field name, or one of :authority, :method, :path, :scheme, :status',
})

/** Gateway API HeaderName: a field name without pseudo-headers. */
export const plainHeaderName = text({
  name: 'HTTPHeaderName',
  min: 1,
  max: 256,
  pattern: `^${token}$`,
  expects: 'an HTTP field name',
})

export const sectionName = text({
  name: 'SectionName',
  min: 1,
  max: 253,
  pattern: `^${dnsName}$`,
  expects: 'a lowercase DNS name',
})

const durationText = 'a duration of up to four parts such as 15s, 500ms or 1h30m'

/** Gateway API duration (GEP-2257) for fields in which zero has a meaning. */
export const durationOrZero = text({
  name: 'Duration',
  max: 28,
  pattern: '^([0-9]{1,5}(h|m|s|ms)){1,4}$',
  expects: durationText,
})

/** Gateway API duration (GEP-2257), longer than zero. */
export const duration = withRules(
  durationOrZero,
  rule<string>({
    message: 'must be longer than 0s',
    cel: "self.matches('[1-9]')",
    holds: (value) => /[1-9]/.test(value),
  }),
)

/** RFC 1123 subdomain, the form of most object names. */
export const objectName = text({
  name: 'ObjectName',
  min: 1,
  max: 253,
  pattern: `^${dnsName}$`,
  expects: 'a lowercase DNS name',
})

/** RFC 1123 label, the form of namespaces. */
export const namespaceName = text({
  name: 'Namespace',
  min: 1,
  max: 63,
  pattern: `^${label}$`,
  expects: 'a lowercase DNS label',
})

/** An exact host name, or `*.` and a suffix. */
export const wildcardHostname = text({
  name: 'Hostname',
  min: 1,
  max: 253,
  pattern: `^(\\*\\.)?${dnsName}$`,
  expects: 'a lowercase host name, with or without a leading *.',
})

export const preciseHostname = text({
  name: 'PreciseHostname',
  min: 1,
  max: 253,
  pattern: `^${dnsName}$`,
  expects: 'a lowercase host name without wildcard',
})

/** API group of the object that a reference names; empty for the core group. */
export const groupName = text({
  name: 'Group',
  max: 253,
  pattern: `^$|^${dnsName}$`,
  expects: 'empty, or a lowercase DNS name',
})

export const kindName = text({
  name: 'Kind',
  min: 1,
  max: 63,
  pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$',
  expects: 'a kind, such as Service',
})

/** An IP address or a CIDR. `compile` of a policy checks the numbers. */
export const addressRange = text({
  name: 'AddressRange',
  min: 1,
  max: 49,
  pattern: '^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$',
  expects: 'an IP address or a CIDR',
})

/** `domain/path`, such as `sluice.dev/gateway-controller`. */
export const controllerName = text({
  name: 'GatewayController',
  min: 1,
  max: 253,
  pattern: `^${dnsName}\\/[A-Za-z0-9\\/\\-._~%!$&'()*+,;=:]+$`,
  expects: 'a domain and a path, such as example.com/controller',
})
