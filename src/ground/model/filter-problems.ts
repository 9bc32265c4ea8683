/** Finds filters of a route that cannot be applied. Proxies refuse the requests of such a rule. */
import { headerProblems } from './header-changes.ts'
import type { PathModifier, RouteFilter } from './resources.ts'

interface FilterProblem {
  /** Path of the field as the user writes it, such as `urlRewrite.path.replaceFullPath`. */
  readonly path: string
  readonly message: string
}

/** The first value in the filter that could not be sent; undefined if there is none. */
export function filterProblem(filter: RouteFilter): FilterProblem | undefined {
  switch (filter.type) {
    case 'requestHeaders':
      return within('requestHeaderModifier', headerProblems(filter.changes)[0])
    case 'responseHeaders':
      return within('responseHeaderModifier', headerProblems(filter.changes)[0])
    case 'rewrite':
      return within('urlRewrite', hostProblem(filter.hostname) ?? pathProblem(filter.path))
    case 'redirect':
      return within('requestRedirect', hostProblem(filter.hostname) ?? pathProblem(filter.path))
    case 'mirror':
      return undefined
  }
}

const within = (member: string, problem: FilterProblem | undefined): FilterProblem | undefined =>
  problem && { path: `${member}.${problem.path}`, message: problem.message }

function hostProblem(hostname: string | undefined): FilterProblem | undefined {
  if (hostname === undefined || /^[0-9A-Za-z.\-_[\]:]+$/.test(hostname)) return undefined
  return { path: 'hostname', message: `${JSON.stringify(hostname)} is not a host name` }
}

/** Checks a path without query: rewrites and redirects keep the query of the request. */
function pathProblem(path: PathModifier | undefined): FilterProblem | undefined {
  if (path === undefined || isPath(path.value)) return undefined
  const member = path.type === 'ReplaceFullPath' ? 'replaceFullPath' : 'replacePrefixMatch'
  return {
    path: `path.${member}`,
    message: `${JSON.stringify(path.value)} is not a path: it must be visible ASCII characters without ? and #`,
  }
}

/** Whether the text can be the path of a request target. */
function isPath(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text) && !/[?#]/.test(text)
}
