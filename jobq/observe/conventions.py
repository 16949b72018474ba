"""The names of what is measured, after OpenTelemetry's semantic conventions for messaging.

https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
"""

SYSTEM = "messaging.system"
#: The value of :data:`SYSTEM`.
JOBQ = "jobq"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
#: The operation of an attempt, also the first word of its span's name.
PROCESS = "process"
ERROR_TYPE = "error.type"

# Of jobq's own: the conventions have no word for them.
KIND = "jobq.job.kind"
ATTEMPT = "jobq.job.attempt"
MAX_ATTEMPTS = "jobq.job.max_attempts"
