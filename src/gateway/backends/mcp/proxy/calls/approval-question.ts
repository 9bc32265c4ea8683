/** The question of the gateway to the user of a client. */

/** Key of the question in `inputRequests`. */
export const questionKey = 'sluice-approval'
const idPrefix = `"${questionKey}/`

/** Whether a response of a legacy client is to a question of the gateway. `id` is JSON. */
export const isApprovalId = (id: string): boolean => id.startsWith(idPrefix)

/** Key under which the thread of a call waits for the response. `id` is JSON. */
export const approvalKey = (session: string | undefined, id: string): string =>
  `${session} approval ${id}`
