"""What runs inside a training job: progress files for any job, and the lab's own small one."""
