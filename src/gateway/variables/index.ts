/**
 * What expressions see of an exchange.
 *
 *   const rule = new Expression('request.headers["x-team"] == "a"')
 *   const pending = bufferBodies(exchange, rule)          // only if it mentions a body
 *   if (pending !== undefined) await pending
 *   rule.evaluate(exchange)                               // true, false, another value, an error
 *
 * Nothing is made for a request before an expression asks for it, and the views are shared by all
 * evaluations of a thread. So a result that is a map or a list may be a view of the request: use it
 * at once (write it as text or JSON) and never keep it.
 */
export { BoundAttributes, observedParts } from './attributes.ts'
export { type BodyNeeds, bufferBodies } from './bodies.ts'
export { Condition } from './condition.ts'
export { Expression, textOfResult, toBytes, toFieldValue } from './expression.ts'
export { grpcStatus } from './fields.ts'
