# Where the store keeps its list of items.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

variable "name" {
  description = "The store's name, which is a part of the names of all that belongs to it."
  type        = string
  default     = "main"
}

locals {
  tags = {
    team  = "warehouse"
    store = var.name
  }
}

# The list is kept for ever: what was deleted by mistake
# can be brought back.
resource "aws_s3_bucket" "items" {
  bucket = "${var.name}-items"
  tags   = local.tags

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [tags["last_seen"], tags["seen_by"]]
  }

  dynamic "cors_rule" {
    for_each = var.origins
    content {
      allowed_methods = ["GET", "HEAD"]
      allowed_origins = [cors_rule.value]
      max_age_seconds = 3600
    }
  }
}

resource "aws_iam_policy" "read_items" {
  name = "${var.name}-read-items"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Action   = ["s3:GetObject", "s3:ListBucket"]
        Effect   = "Allow"
        Resource = [aws_s3_bucket.items.arn, "${aws_s3_bucket.items.arn}/*"]
      },
    ]
  })
}

module "alarms" {
  source  = "./modules/alarms"
  bucket  = aws_s3_bucket.items.id
  on_call = ["alice@example.com", "bob@example.com"]
}

output "bucket" {
  description = "The name of the bucket that holds the list of items."
  value       = aws_s3_bucket.items.id
}
