/** Finds the next page by links in a document from an operation to itself (OpenAPI, Link Object). */
import { type Fields, fieldsOf, type OpenApiDocument } from './document.ts'

const bodyExpression = '$response.body'

/**
 * Returns JSON pointers into the body of a response by the names of query parameters, from a link of the operation to
 * itself; undefined if there is none.
 */
export function declaredPages(
  document: OpenApiDocument,
  operation: Fields,
): Readonly<Record<string, string>> | undefined {
  for (const [status, response] of Object.entries(fieldsOf(operation.responses))) {
    if (!status.startsWith('2')) continue
    const links = fieldsOf(fieldsOf(document.resolve(response)).links)
    for (const one of Object.values(links)) {
      const { operationId, parameters } = fieldsOf(document.resolve(one))
      if (operationId === undefined || operationId !== operation.operationId) continue
      const found = Object.entries(fieldsOf(parameters)).flatMap(([name, expression]) =>
        typeof expression === 'string' && expression.startsWith(`${bodyExpression}#/`)
          ? [[name.replace(/^query\./, ''), expression.slice(bodyExpression.length)] as const]
          : [],
      )
      if (found.length > 0) return Object.fromEntries(found)
    }
  }
  return undefined
}
